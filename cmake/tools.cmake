# The command line tool. cJSON (libcjson-dev) reads and writes its JSON; editline (libedit-dev) edits lines in `chat`, which
# falls back to plain lines without it.
find_package(PkgConfig REQUIRED)
pkg_check_modules(cjson REQUIRED IMPORTED_TARGET libcjson)
pkg_check_modules(editline IMPORTED_TARGET libedit)
add_executable(arenite ${tool_sources})
target_link_libraries(arenite PRIVATE llama arenite_flags PkgConfig::cjson m)
target_compile_definitions(arenite PRIVATE ARENITE_VERSION="${PROJECT_VERSION}")
if(ARENITE_FUZZ)
    target_compile_options(arenite PRIVATE -O0)         # takes longer to compile than to run
endif()
if(editline_FOUND)
    target_link_libraries(arenite PRIVATE PkgConfig::editline)
    target_compile_definitions(arenite PRIVATE HAVE_EDITLINE)
endif()
