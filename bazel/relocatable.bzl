"""How the executables find shared libraries that are shipped with them."""

# In ../lib beside the folder of the executable, before the system's. DT_RPATH,
# and not DT_RUNPATH, serves the libraries of these libraries too.
RELOCATABLE_LINKOPTS = [
    "-Wl,-rpath,$$ORIGIN/../lib",
    "-Wl,--disable-new-dtags",
]
