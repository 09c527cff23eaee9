"""How the executables find shared libraries that are shipped with them."""

# Searches ../lib beside the folder of the executable before the system's folders. DT_RPATH, unlike
# DT_RUNPATH, also applies to libraries that these libraries need.
RELOCATABLE_LINKOPTS = [
    "-Wl,-rpath,$$ORIGIN/../lib",
    "-Wl,--disable-new-dtags",
]
