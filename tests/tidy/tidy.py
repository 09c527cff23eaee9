"""The rules of the source tree that a machine can check.

Every rule is a function from a file to complaints, each of which says what is
wrong and where. tidy_test.py tests the rules and then applies them to the tree.
"""

import os
import re
import subprocess

LINES_PER_FILE_MAX = 600
LINES_PER_FUNCTION_MAX = 70
COLUMNS_MAX = 100

CODE_SUFFIXES = (".cc", ".h", ".cu", ".cuh", ".proto", ".py", ".sh", ".bzl")
CPP_SUFFIXES = (".cc", ".h", ".cu", ".cuh")
TEXT_SUFFIXES = CODE_SUFFIXES + (".bazel", ".md", ".job", ".txt", ".yaml")

# Each pattern with what to do instead. The patterns are built from pieces, so that this file does
# not contain what it forbids.
BANNED = [
    (r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b", "do it, or write an entry in a tracker"),
    (r"(?i)\bissue" r" #?\d+\b", "say the reason itself"),
    (r"(?<![\w.-])/(work|root|home)" r"/[\w.-]", "no paths of one machine"),
    (r"\bshared" r"/(?!data\b)(?=design|reference|tools|hooks)",
     "not part of the project"),
    (r"\b(pypi\.org|files\.pythonhosted\.org|deb\.debian\.org|"
     r"registry\.npmjs\.org|crates\.io|proxy\.golang\.org)\b",
     "the build takes packages from apt and names no host"),
]

# Words that readers of this field do not expect, with what to write instead. docs/style.md lists
# them for readers.
TERMS = [
    (r"anew", "again, from the beginning"),
    (r"deal(s|t|ing)? out|dealt-out", "distribute, assign"),
    (r"doors?", "admission check"),
    (r"farewells?", "leave message"),
    (r"fed", "dispatched"),
    (r"for ever", "indefinitely, forever"),
    (r"foretells?|foretold", "predict"),
    (r"giv(e|es|ing) back|gave back|given back", "return"),
    (r"held against", "compared with"),
    (r"house", "code, source tree"),
    (r"how-manieth", "index, sequence number"),
    (r"kin", "related, other"),
    (r"(lost|loses) its mind", "is inconsistent"),
    (r"makes? no sense", "is invalid"),
    (r"meet|meets|meeting|met by", "rendezvous, connect"),
    (r"mend(s|ed|ing)?", "fix"),
    (r"minted|mints?", "generate"),
    (r"namesakes?", "duplicate task"),
    (r"nobody|somebody|anybody|whoever", "name the thread, task, process or caller"),
    (r"obey(s|ed|ing)?", "handle"),
    (r"of one mind", "agree"),
    (r"of one's own|on one's own", "custom"),
    (r"parting", "leaving"),
    (r"scribbl(e|es|ing)", "overwrite"),
    (r"strangers?", "unrelated process"),
    (r"struck|strikes?|striking", "inject"),
    (r"cuts?(?! off)|cutting(?! off)", "split, slice, truncate; snapshot"),
]
_TERM_PATTERNS = [(re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE),
                   instead) for words, instead in TERMS]

# The list of terms contains them.
TERMS_EXEMPT = ("docs/style.md",)

SLEEPS = re.compile(
    r"\b(sleep_for|sleep_until|SleepFor|usleep|nanosleep)\b|\bsleep\(\d")

ENDLESS_WAITS = re.compile(r"\bthis_thread::yield\(|\bWaitForNotification\(\)")


def length_of_file(path, text):
    count = text.count("\n")
    if path.endswith(CODE_SUFFIXES) and count > LINES_PER_FILE_MAX:
        yield f"{path}: {count} lines; {LINES_PER_FILE_MAX} at most"


# Comments, literals and preprocessor lines, which may contain braces that are not code.
_NO_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'
    r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE)
_BEFORE_SIGNATURE = re.compile(r"(\s|(public|private|protected):)*")
_NO_FUNCTION = re.compile(r"\s*(namespace|class|struct|enum|union|extern)\b|"
                          r".*=\s*$", re.DOTALL)


def length_of_functions(path, text):
    """Checks the length of functions, from the first line of a signature to its closing brace."""
    if not path.endswith(CPP_SUFFIXES):
        return
    code = _NO_CODE.sub(lambda match: "\n" * match.group().count("\n"), text)
    depth = 0
    function = None  # (its first line, the depth outside it)
    head_begin = 0  # After the last brace or semicolon.
    for match in re.finditer(r"[{};]", code):
        at = match.start()
        if match.group() == "{":
            head = code[head_begin:at]
            if function is None and "(" in head and not _NO_FUNCTION.match(head):
                first = head_begin + _BEFORE_SIGNATURE.match(head).end()
                function = (code.count("\n", 0, first) + 1, depth)
            depth += 1
        elif match.group() == "}":
            depth -= 1
            if function is not None and depth == function[1]:
                length = code.count("\n", 0, at) + 2 - function[0]
                if length > LINES_PER_FUNCTION_MAX:
                    yield (f"{path}:{function[0]}: a function of {length} "
                           f"lines; {LINES_PER_FUNCTION_MAX} at most")
                function = None
        head_begin = at + 1


def header_guard(path, text):
    if not path.endswith((".h", ".cuh")) or path.startswith("third_party/"):
        return
    guard = re.sub(r"[^A-Za-z0-9]", "_", path).upper() + "_"
    wanted = [f"#ifndef {guard}", f"#define {guard}", f"#endif  // {guard}"]
    lines = [line for line in text.split("\n") if line]
    if lines[:2] != wanted[:2] or lines[-1] != wanted[2]:
        yield f"{path}: the header guard has to be {guard}"


def banned_words(path, text):
    if path.startswith("tests/tidy/"):
        return
    for number, line in enumerate(text.split("\n"), 1):
        for pattern, instead in BANNED:
            match = re.search(pattern, line)
            if match:
                yield f'{path}:{number}: "{match.group()}": {instead}'


# A literal or a comment, whichever begins first.
_CPP_PROSE = re.compile(
    r'R"([^(\s]*)\((?P<raw>.*?)\)\1"|"(?P<literal>(?:\\.|[^"\\\n])*)"|'
    r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'|//(?P<line>[^\n]*)|"
    r"/\*(?P<block>.*?)\*/", re.DOTALL)
_MARKDOWN_CODE = re.compile(r"^```.*?^```|`[^`]*`", re.DOTALL | re.MULTILINE)
_HASH_COMMENT = re.compile(r"(?:^|\s)#[^\n]*")
_INCLUDE = re.compile(r"^#include .*$", re.MULTILINE)


def prose(path, text):
    """Yields the comments, messages and paragraphs of a file, each with its line number."""
    if path.endswith(".md"):
        code_free = _MARKDOWN_CODE.sub(
            lambda match: "\n" * match.group().count("\n"), text)
        for number, line in enumerate(code_free.split("\n"), 1):
            yield number, line
        return
    if path.endswith(CPP_SUFFIXES + (".proto",)):
        text = _INCLUDE.sub("", text)
        for match in _CPP_PROSE.finditer(text):
            kind = match.lastgroup
            if kind is not None and match.group(kind):
                first = text.count("\n", 0, match.start(kind)) + 1
                for i, line in enumerate(match.group(kind).split("\n")):
                    yield first + i, line
        return
    for match in _HASH_COMMENT.finditer(text):
        yield text.count("\n", 0, match.end()) + 1, match.group()


def unusual_terms(path, text):
    if path in TERMS_EXEMPT or path.startswith("tests/tidy/"):
        return
    for number, words in prose(path, text):
        for pattern, instead in _TERM_PATTERNS:
            match = pattern.search(words)
            if match:
                yield (f'{path}:{number}: "{match.group()}" is not our term: '
                       f"{instead}; see docs/style.md")


def waits_in_virtual_time(path):
    """True if a sleep takes no time, and a wait without an end is reported as a deadlock."""
    return path.startswith("tests/simulation/")


def sleeps_in_tests(path, text):
    is_test = path.startswith("tests/") or path.endswith("_test.cc")
    if not is_test or not path.endswith(CPP_SUFFIXES) or waits_in_virtual_time(path):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if SLEEPS.search(line):
            yield f"{path}:{number}: tests wait for events, not for time"


def endless_waits_in_tests(path, text):
    """Yields loops and waits of tests that hang if the expected event does not happen."""
    if not path.endswith(("_test.cc", "_suite.cc")) and not path.startswith("tests/"):
        return
    if not path.endswith(CPP_SUFFIXES) or waits_in_virtual_time(path):
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = ENDLESS_WAITS.search(line)
        if match:
            yield (f"{path}:{number}: {match.group()} has no deadline; use AwaitTrue() or "
                   "WaitForNotificationWithTimeout()")


def braces(path, text):
    """Requires braces around a statement that is not on the line of its condition."""
    if not path.endswith(CPP_SUFFIXES):
        return
    lines = text.split("\n")
    for number, (line, body) in enumerate(zip(lines, lines[1:]), 1):
        head = re.match(r"^( +)(?:\} else )?(?:if|for|while) \(.*\)$", line)
        if not head or line.count("(") != line.count(")"):
            continue
        if re.match(f"^{head[1]}  +\\S.*;$", body):
            yield f"{path}:{number}: no braces around a statement on its own line"


def default_visibility(path, text):
    """Checks that a target is private unless it declares who may use it."""
    if not path.endswith("BUILD.bazel") or path.startswith("third_party/"):
        return
    if "//visibility:public" in re.sub(r'name = "muster",.*?\)', "", text,
                                       flags=re.DOTALL):
        yield f"{path}: visible to everybody; bazel/layers.bzl says who may use a room"


def line_length(path, text):
    """Checks the lengths of lines in files that clang-format does not handle."""
    if not path.endswith((".py", ".sh", ".proto")):
        return
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS_MAX:
            yield f"{path}:{number}: {len(line)} columns; {COLUMNS_MAX} at most"


_FILE_STREAM = re.compile(r"\bstd::(ifstream|fstream|filebuf)\b|\b(fopen|freopen)\(")
# Tests, benchmarks and examples open only their own files.
_OPENS_ANY_FILE = re.compile(r"^(tests|bench|examples)/|/testing/|_test\.cc$|/test_[^/]*$")


def small_files(path, text):
    """Checks that small files are read by one function, with a bound, a deadline and errors."""
    if not path.endswith(CPP_SUFFIXES) or _OPENS_ANY_FILE.search(path):
        return
    for number, line in enumerate(text.split("\n"), 1):
        match = _FILE_STREAM.search(line)
        if match:
            yield (f"{path}:{number}: {match.group()}: read a small file with "
                   f"common/core/system/small_file.h, and data with common/io/storage")


FILE_RULES = [length_of_file, length_of_functions, header_guard, banned_words, braces,
              unusual_terms, sleeps_in_tests, endless_waits_in_tests, default_visibility,
              line_length, small_files]


def layout(root, paths):
    """Yields files that clang-format would lay out differently."""
    paths = [path for path in paths if path.endswith(CPP_SUFFIXES)]
    done = subprocess.run(
        ["xargs", "-0", "-P2", "-n100", "clang-format-14", "--dry-run"],
        input="\0".join(paths), cwd=root, capture_output=True, text=True)
    found = sorted(set(re.findall(
        r"^(.*?):(\d+):\d+: warning: ", done.stderr, re.MULTILINE)))
    if done.returncode != 0 and not found:
        yield f"clang-format-14 failed: {done.stderr}"
    for path, number in found:
        yield f"{path}:{number}: not laid out as clang-format-14 does"


# Words that codespell takes for misspelled: identifiers with capitals inside, and words that are
# misspelled on purpose in tests or that are names.
SPELLING_IGNORE_REGEX = r"\b\w*[a-z][A-Z]\w*\b"
SPELLING_IGNORE_WORDS = ("cheif", "kernal", "lod", "mape", "nd", "tabel", "taks", "te")


def spelling(root, paths):
    """Yields words that codespell, which knows common misspellings, would correct."""
    paths = [path for path in paths if path.endswith(TEXT_SUFFIXES)]
    done = subprocess.run(
        ["xargs", "-0", "codespell", "--disable-colors",
         f"--ignore-regex={SPELLING_IGNORE_REGEX}",
         f"--ignore-words-list={','.join(SPELLING_IGNORE_WORDS)}"],
        input="\0".join(paths), cwd=root, capture_output=True, text=True)
    found = done.stdout.splitlines()
    if done.returncode != 0 and not found:
        yield f"codespell failed: {done.stderr}"
    yield from found


_TYPE = re.compile(
    r"^(?:template <[^\n]*>\n)?(?:class|struct|enum class) (\w+)(?: final)?"
    r"(?:\s*:[^;{]*)?\s*\{", re.MULTILINE)


def types_of_one_name(texts):
    """Yields types of the library that share a name, which the linker takes for one type.

    Only types in the outermost scope of headers count: one namespace contains them all.
    """
    homes = {}
    for path, text in sorted(texts.items()):
        if not path.endswith(".h") or path.startswith("third_party/"):
            continue
        for match in _TYPE.finditer(text):
            homes.setdefault(match.group(1), []).append(path)
    for name, paths in sorted(homes.items()):
        if len(paths) > 1:
            yield f"{name} is a type in {' and in '.join(paths)}; rename one"


# A command for readers, or the literal of a target that becomes part of a command.
_BAZEL_COMMAND = re.compile(r"bazel (?:build|run|test)\b[^\n`;&|]*")
_TARGET_LITERAL = re.compile(r'"//[a-z][\w/]*(?::\w+)?"')
_LABEL = re.compile(r"(?<![\w/])//([\w/.-]*\w)?(?::([\w.-]*\w))?")
# Labels of several targets, or of a target that the reader chooses.
_PATTERN = re.compile(r"//[\w/]*\.\.\.|//[\w/]+:my_test|//path/to:\w+")


def targets_that_do_not_exist(texts):
    """Yields Bazel targets in messages, comments and documents that do not exist."""
    for path, text in sorted(texts.items()):
        if path.startswith(("tests/tidy/", "third_party/")):
            continue
        named = []
        if path.endswith((".cc", ".h", ".py", ".sh", ".md")):
            named += _BAZEL_COMMAND.finditer(text)
        if path.endswith(".cc") and not path.endswith("_test.cc"):
            named += _TARGET_LITERAL.finditer(text)
        for match in named:
            for package, name in _LABEL.findall(_PATTERN.sub("", match.group())):
                target = name or package.rsplit("/", 1)[-1]
                build = texts.get(os.path.join(package, "BUILD.bazel"), "")
                if (target == "all" and build or f'"{target}"' in build
                        or target == "tests" and "muster_tests(" in build
                        or target == package.rsplit("/", 1)[-1] and "muster_room(" in build):
                    continue
                number = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{number}: there is no target //{package}:{target}"


# Python defines the meaning of these names.
NAMES_OF_THE_LANGUAGE = ("__init__.py",)


def files_of_one_name(texts):
    """Code files whose names do not say which of two neighbouring rooms they are in.

    Rooms are neighbours if they have the same parent, if one is the other's parent,
    or if they are on one floor and one includes headers of the other.
    """
    folders = {}  # By name of a file.
    used = {}  # By folder, the folders whose headers it includes.
    for path, text in sorted(texts.items()):
        folder, name = os.path.split(path)
        if not path.endswith(CODE_SUFFIXES) or path.startswith("third_party/"):
            continue
        if name not in NAMES_OF_THE_LANGUAGE:
            folders.setdefault(name, []).append(folder)
        used.setdefault(folder, set()).update(
            os.path.dirname(header) for header in includes(text))

    def floor(folder):
        return "/".join(folder.split("/")[:2 if folder.startswith("common/") else 1])

    def are_neighbours(a, b):
        above_a, above_b = os.path.dirname(a), os.path.dirname(b)
        if above_a in (above_b, b) or above_b == a:
            return True
        return floor(a) == floor(b) and (b in used[a] or a in used[b])

    for name, places in sorted(folders.items()):
        for i, a in enumerate(places):
            for b in places[i + 1:]:
                if are_neighbours(a, b):
                    yield f"{b}/{name} has the name of a file in {a}/; rename one"


# Precompiled headers, each with the names that a source which includes it uses. Without the
# include, such sources compile with precompiled headers but not everywhere. Headers that nearly all
# others include are left out.
USES = {
    "algorithm": r"std::(sort|stable_sort|find|find_if|any_of|all_of|none_of|min|max|"
                 r"copy|copy_n|fill|fill_n|transform|lower_bound|upper_bound|remove_if|"
                 r"count|count_if|reverse|min_element|max_element|clamp|equal|unique|"
                 r"nth_element|rotate|generate|binary_search)\(",
    "array": r"std::array<",
    "atomic": r"std::(atomic\b|memory_order)",
    "chrono": r"std::chrono\b",
    "cmath": r"std::(sqrt|exp|log|pow|isfinite|isnan|isinf|fabs|floor|ceil|round|tanh|"
             r"lround|erf|cos|sin|log1p|expm1|fmod|ldexp|nearbyint)\(",
    "cstdlib": r"std::(getenv|abort|exit|_Exit|strtol|strtod|strtoull|malloc|free)\(",
    "cstring": r"std::(memcpy|memset|memcmp|memmove|strlen|strcmp|strerror)\(",
    "deque": r"std::deque<",
    "filesystem": r"std::filesystem\b",
    "fstream": r"std::[io]?fstream\b",
    "functional": r"std::(function<|hash<|ref\(|cref\()",
    "iostream": r"std::(cin|cout|cerr|clog)\b",
    "limits": r"std::numeric_limits<",
    "map": r"std::(multi)?map<",
    "memory": r"std::(unique_ptr|shared_ptr|weak_ptr|make_unique|make_shared)\b",
    "numeric": r"std::(accumulate|iota|partial_sum|inner_product)\(",
    "optional": r"std::(optional<|nullopt\b)",
    "set": r"std::(multi)?set<",
    "sstream": r"std::[io]?stringstream\b",
    "thread": r"std::(thread|this_thread)\b",
    "variant": r"std::(variant<|visit\(|get_if<|monostate\b)",
    "vector": r"std::vector\b",
    "absl/base/thread_annotations.h":
        r"ABSL_(PT_)?(GUARDED_BY|LOCKS_EXCLUDED|EXCLUSIVE_LOCKS|SHARED_LOCKS)",
    "absl/container/flat_hash_map.h": r"absl::flat_hash_map<",
    "absl/container/flat_hash_set.h": r"absl::flat_hash_set<",
    "absl/container/inlined_vector.h": r"absl::InlinedVector<",
    "absl/functional/any_invocable.h": r"absl::AnyInvocable<",
    "absl/functional/function_ref.h": r"absl::FunctionRef<",
    "absl/memory/memory.h": r"absl::WrapUnique\(",
    "absl/strings/ascii.h":
        r"absl::(ascii_\w+|AsciiStrTo(Lower|Upper)|Strip(Leading|Trailing)?AsciiWhitespace)\(",
    "absl/strings/escaping.h":
        r"absl::(CEscape|CHexEscape|CUnescape|BytesToHexString|HexStringToBytes|\w*Base64\w*)\(",
    "absl/strings/match.h": r"absl::(StrContains|StartsWith|EndsWith|EqualsIgnoreCase)\(",
    "absl/strings/numbers.h": r"absl::SimpleAto\w+\(",
    "absl/strings/str_cat.h": r"absl::(StrCat|StrAppend|Hex)\(",
    "absl/strings/str_format.h": r"absl::Str(Append)?Format\(",
    "absl/strings/str_join.h": r"absl::StrJoin\(",
    "absl/strings/str_replace.h": r"absl::StrReplaceAll\(",
    "absl/strings/str_split.h": r"absl::(StrSplit|MaxSplits|ByAnyChar)\(",
    "absl/strings/strip.h": r"absl::(Strip|Consume)(Prefix|Suffix)\(",
    "absl/synchronization/mutex.h":
        r"absl::(Mutex|MutexLock|ReaderMutexLock|CondVar|Condition)\b",
    "absl/time/clock.h": r"absl::(Now|SleepFor)\(",
    "nlohmann/json.hpp": r"nlohmann::",
}

_NAME = re.compile(r"\b(?:std|absl|nlohmann)::\w+[<(]?|\bABSL_\w+")


def includes(text):
    return re.findall(r'^#include ["<]([^">]+)[">]', text, re.MULTILINE)


def missing_includes(texts):
    """Yields precompiled headers that a source uses but does not include.

    A .cc file need not include what its own header, the first one that it includes, includes.
    """
    for path, text in sorted(texts.items()):
        if not path.endswith((".cc", ".h")):
            continue
        included = includes(text)
        known = set(included)
        if path.endswith(".cc") and included:
            known.update(includes(texts.get(included[0], "")))
        code = re.sub(r'//.*|"(\\.|[^"\\\n])*"', "", text)
        names = "\n".join(sorted(set(_NAME.findall(code))))
        for header, use in USES.items():
            found = header not in known and re.search(rf"^{use}", names, re.MULTILINE)
            if found:
                yield f"{path}: {found.group()} is used without {header}"


def files_of(root):
    """Returns the paths of the project's text files: those in git or, without git, all files."""
    try:
        listed = subprocess.run(["git", "-C", root, "ls-files", "-z"],
                                capture_output=True, check=True).stdout
        paths = listed.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):  # An unpacked archive.
        paths = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, _, names in os.walk(root) for name in names]
    return sorted(path for path in paths
                  if path.endswith(TEXT_SUFFIXES)
                  and not path.startswith(("bazel-", ".git/", "runs/"))
                  and os.path.isfile(os.path.join(root, path)))


def check_tree(root):
    paths = files_of(root)
    complaints = []
    texts = {}
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            texts[path] = file.read()
        for rule in FILE_RULES:
            complaints += rule(path, texts[path])
    complaints += types_of_one_name(texts)
    complaints += files_of_one_name(texts)
    complaints += missing_includes(texts)
    complaints += targets_that_do_not_exist(texts)
    complaints += layout(root, paths)
    complaints += spelling(root, paths)
    return complaints
