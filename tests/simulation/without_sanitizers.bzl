"""Programs whose hooks replace functions that sanitizers replace as well."""

# The value of target_compatible_with.
WITHOUT_SANITIZERS = select({
    "//tests/simulation:asan": ["@platforms//:incompatible"],
    "//tests/simulation:tsan": ["@platforms//:incompatible"],
    "//conditions:default": [],
})
