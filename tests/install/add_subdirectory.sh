# Configures a project that has Sandglass as a part, and builds the smallest library in it. install_test.cc calls this.
mkdir "$WORK/outer"
cat >"$WORK/outer/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(outer LANGUAGES C CXX)
add_subdirectory("$SOURCE" sandglass)
add_executable(outer main.cc)
target_link_libraries(outer PRIVATE sandglass_base)
foreach(target IN ITEMS cli_test undo_bench path_parser sandglass_demo)
  if(TARGET \${target})
    message(FATAL_ERROR "\${target} is none of another project's business")
  endif()
endforeach()
if(NOT TARGET sandglass_undo OR NOT TARGET sandglass)
  message(FATAL_ERROR "the library or the program is missing")
endif()
END
cat >"$WORK/outer/main.cc" <<'END'
#include "base/error.h"
int main() { return sandglass::CodeName(sandglass::Code::kInvalid) == "invalid" ? 0 : 1; }
END
launcher=
if command -v ccache >/dev/null; then launcher=-DCMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
# shellcheck disable=SC2086
cmake -S "$WORK/outer" -B "$WORK/build" -G Ninja -DCMAKE_CXX_COMPILER="$CXX" $launcher
cmake --build "$WORK/build" --parallel 2 --target outer
"$WORK/build/outer"
