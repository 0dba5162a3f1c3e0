# The vocabulary of every module's CMakeLists.txt:
#
#   sandglass_library(NAME SOURCES ... DEPS ... [PRIVATE_DEPS ...])
#       Target sandglass_<name>, include root src/.
#   sandglass_program(NAME SOURCES ... DEPS ... [OUTPUT file])
#       A program in <build>/bin.
#   sandglass_bundle_libraries(NAME)
#       That program needs no shared library but the C library, where the preset says so.
#   sandglass_test(NAME SOURCES ... DEPS ... [LABELS ...])
#       GoogleTest binary, listed in test_manifest.txt. Labels that tools/run_tests.py knows: `fs` (run
#       once per file system) and `model` (long: runs only when asked for).
#   sandglass_fuzz(NAME SOURCES ... DEPS ... [COVERS ...])
#       Fuzz target with its corpus in fuzz/corpus/NAME/, listed in fuzz_manifest.txt. COVERS names the
#       source files, relative to the root, whose line coverage by the corpus is reported.
#   sandglass_bench(NAME SOURCES ... DEPS ...)
#       Google Benchmark binary, listed in bench_manifest.txt.
#
# As a part of another project (add_subdirectory) only the libraries and the program are built.
#
# A dependency is a module name (base, undo, ...) or any CMake target. DEPS are public.

include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# Another project's compiler may warn of more than ours does; that must not break its build.
set(warnings_are_errors "")
if(PROJECT_IS_TOP_LEVEL)
  set(warnings_are_errors -Werror)
endif()
# -Wconversion is left out: on code full of system call results it buries the warnings that matter. A
# partial designated initialiser is how we spell "the rest is default", so that one warning goes too.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow ${warnings_are_errors}
  -Wno-missing-designated-field-initializers
  "$<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety>")
# Messages and CHECK failures name files relative to the root, and builds in two places share one cache.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")
add_compile_definitions(_GNU_SOURCE _FILE_OFFSET_BITS=64)

if(SANDGLASS_SANITIZE)
  add_compile_options(-fsanitize=${SANDGLASS_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${SANDGLASS_SANITIZE})
endif()
if(SANDGLASS_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(SANDGLASS_COVERAGE)
  add_compile_options(-fprofile-instr-generate -fcoverage-mapping)
  add_link_options(-fprofile-instr-generate -fcoverage-mapping)
endif()

# Whoever links a library of ours, also from a folder above, must find what that links.
set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(zstd REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
if(PROJECT_IS_TOP_LEVEL)
  find_package(GTest REQUIRED)
  find_package(benchmark REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()

# Debian ships no CMake package for xxHash.
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
if(NOT TARGET xxhash::xxhash)
  add_library(xxhash::xxhash UNKNOWN IMPORTED GLOBAL)
  set_target_properties(xxhash::xxhash PROPERTIES
    IMPORTED_LOCATION "${XXHASH_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${XXHASH_INCLUDE_DIR}")
endif()
# Nor for RE2.
find_path(RE2_INCLUDE_DIR re2/re2.h REQUIRED)
find_library(RE2_LIBRARY re2 REQUIRED)
if(NOT TARGET re2::re2)
  add_library(re2::re2 UNKNOWN IMPORTED GLOBAL)
  set_target_properties(re2::re2 PROPERTIES
    IMPORTED_LOCATION "${RE2_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${RE2_INCLUDE_DIR}")
endif()
# One spelling, whichever flavour of the library the system has.
if(NOT TARGET zstd::libzstd)
  add_library(zstd::libzstd INTERFACE IMPORTED GLOBAL)
  target_link_libraries(zstd::libzstd INTERFACE zstd::libzstd_shared)
endif()

# `base` means sandglass_base, also when that module comes later; anything else is a CMake target as it
# stands.
function(sandglass_resolve_deps out)
  set(resolved "")
  foreach(dep IN LISTS ARGN)
    if(TARGET ${dep} OR dep MATCHES "::")
      list(APPEND resolved ${dep})
    else()
      list(APPEND resolved "$<IF:$<TARGET_EXISTS:sandglass_${dep}>,sandglass_${dep},${dep}>")
    endif()
  endforeach()
  set(${out} "${resolved}" PARENT_SCOPE)
endfunction()

# Adds `line` to the manifest kept in the global property `manifest`.
function(sandglass_manifest manifest line)
  set_property(GLOBAL APPEND PROPERTY ${manifest} "${line}")
endfunction()

function(sandglass_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  sandglass_resolve_deps(deps ${ARG_DEPS})
  sandglass_resolve_deps(private_deps ${ARG_PRIVATE_DEPS})
  set(target sandglass_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(${target} PUBLIC ${deps} Threads::Threads PRIVATE ${private_deps})
endfunction()

function(sandglass_program name)
  cmake_parse_arguments(ARG "" "OUTPUT" "SOURCES;DEPS" ${ARGN})
  sandglass_resolve_deps(deps ${ARG_DEPS})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${deps})
  if(ARG_OUTPUT)
    set_target_properties(${name} PROPERTIES OUTPUT_NAME ${ARG_OUTPUT})
  endif()
endfunction()

# Every command of ours is a process that lives for milliseconds, and finding symbols in seven shared libraries takes more than one of
# them. So a program that is shipped carries all but the C library, which stays shared because users are looked up through it.
option(SANDGLASS_BUNDLE "Link the C++ libraries into the programs that are shipped" OFF)
function(sandglass_bundle_libraries name)
  if(NOT SANDGLASS_BUNDLE)
    return()
  endif()
  # Before the libraries in the order of linking: the shared ones, having nothing left to offer, are not needed then.
  set(archives "")
  foreach(archive IN ITEMS zstd boost_json boost_container xxhash re2)
    find_library(SANDGLASS_${archive}_ARCHIVE NAMES lib${archive}.a REQUIRED)
    list(APPEND archives "${SANDGLASS_${archive}_ARCHIVE}")
  endforeach()
  target_sources(${name} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/bundled_fmt.cc")
  target_link_options(${name} PRIVATE
    -static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections
    -Wl,--start-group ${archives} -Wl,--end-group)
endfunction()

function(sandglass_test name)
  if(SANDGLASS_FUZZ OR NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LABELS" ${ARGN})
  sandglass_program(${name} SOURCES ${ARG_SOURCES}
    DEPS ${ARG_DEPS} GTest::gmock_main GTest::gmock GTest::gtest)
  # GoogleTest's own macros pass no variadic arguments where standard C++17 wanted one.
  target_compile_options(${name} PRIVATE -Wno-gnu-zero-variadic-macro-arguments)
  list(JOIN ARG_LABELS "," labels)
  sandglass_manifest(SANDGLASS_TESTS "${name}|$<TARGET_FILE:${name}>|${labels}")
endfunction()

function(sandglass_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;COVERS" ${ARGN})
  if(SANDGLASS_FUZZ)
    sandglass_program(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  else()
    sandglass_program(${name}
      SOURCES ${ARG_SOURCES} "${PROJECT_SOURCE_DIR}/cmake/fuzz_replay_main.cc" DEPS ${ARG_DEPS})
  endif()
  if(NOT TARGET fuzzers)
    add_custom_target(fuzzers)  # all of them and nothing else
  endif()
  add_dependencies(fuzzers ${name})
  list(JOIN ARG_COVERS "," covers)
  sandglass_manifest(SANDGLASS_FUZZERS "${name}|$<TARGET_FILE:${name}>|${covers}")
endfunction()

function(sandglass_bench name)
  if(SANDGLASS_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  sandglass_program(${name} SOURCES ${ARG_SOURCES} DEPS ${ARG_DEPS} benchmark::benchmark)
  sandglass_manifest(SANDGLASS_BENCHES "${name}|$<TARGET_FILE:${name}>|")
endfunction()

# A mutant is a fault that the tests must catch. Only the sources that know it are built anew, unless a header does.
function(sandglass_apply_mutant)
  if(NOT SANDGLASS_MUTANT OR NOT TARGET sandglass_undo)
    return()
  endif()
  message(WARNING "building the deliberate fault '${SANDGLASS_MUTANT}' into the undo library")
  set(fault "SANDGLASS_MUTANT_${SANDGLASS_MUTANT}")
  file(GLOB sources "${PROJECT_SOURCE_DIR}/src/undo/*.h" "${PROJECT_SOURCE_DIR}/src/undo/*.cc")
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" found REGEX "${fault}" LIMIT_COUNT 1)
    if(found AND source MATCHES "\\.h$")
      target_compile_definitions(sandglass_undo PRIVATE ${fault})
    elseif(found)
      set_source_files_properties("${source}" TARGET_DIRECTORY sandglass_undo PROPERTIES COMPILE_DEFINITIONS "${fault}")
    endif()
  endforeach()
endfunction()

function(sandglass_write_manifests)
  foreach(pair IN ITEMS "SANDGLASS_TESTS:test" "SANDGLASS_FUZZERS:fuzz" "SANDGLASS_BENCHES:bench")
    string(REPLACE ":" ";" pair "${pair}")
    list(GET pair 0 property)
    list(GET pair 1 kind)
    get_property(lines GLOBAL PROPERTY ${property})
    list(JOIN lines "\n" text)
    file(GENERATE OUTPUT "${PROJECT_BINARY_DIR}/${kind}_manifest.txt" CONTENT "${text}\n")
  endforeach()
endfunction()
