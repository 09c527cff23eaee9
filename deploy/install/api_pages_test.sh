#!/usr/bin/env bash
# Checks that each header that programs include has a page, and that Doxygen reads all
# comments without warnings.
set -euo pipefail

if ! command -v doxygen >/dev/null; then
  echo "there is no doxygen: the test is skipped. Install Debian's package doxygen."
  exit 0
fi
make_pages() {
  deploy/install/make_api_pages.sh --version=1.2.3 "$@" 2>&1
}

include=deploy/install/development_files_include
pages=$TEST_TMPDIR/pages
make_pages --include="$include" --output="$pages" --tags="$TEST_TMPDIR/tags" \
  >"$TEST_TMPDIR/warnings"
cat "$TEST_TMPDIR/warnings"
test ! -s "$TEST_TMPDIR/warnings"
grep -q 'Muster.*1\.2\.3' "$pages/annotated.html"

# Lists the headers that have a page.
python3 - "$TEST_TMPDIR/tags" "$pages" >"$TEST_TMPDIR/found" <<'PYTHON'
import os
import sys
import xml.etree.ElementTree

tags, pages = sys.argv[1:]
for file in xml.etree.ElementTree.parse(tags).iterfind("compound[@kind='file']"):
    if os.path.getsize(os.path.join(pages, file.findtext("filename"))):
        print(file.findtext("path") + file.findtext("name"))
PYTHON
count=0
while read -r header; do
  count=$((count + 1))
  grep -q "/$header\$" "$TEST_TMPDIR/found" || {
    echo "no page of $header" >&2
    exit 1
  }
done < <(cd "$include" && find . -name '*.h' | sed 's|^\./||')
((count > 100))

# The pages contain comments, error codes and code.
grep -q 'cheap to copy' "$pages/classmuster_1_1Dataset.html"
grep -q '<li>kInvalidArgument' "$pages/classmuster_1_1Dataset.html"

# An error in a comment is reported.
mkdir "$TEST_TMPDIR/include"
cat >"$TEST_TMPDIR/include/wrong.h" <<'HEADER'
/// Returns a number.
/// \param height  does not exist
int Number(int width);
HEADER
make_pages --include="$TEST_TMPDIR/include" --output="$TEST_TMPDIR/wrong" |
  grep "argument 'height'"
