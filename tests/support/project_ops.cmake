# ProjectOps drives the undo library; the rest of tests/support does not know it.
if(TARGET sandglass_undo)
  sandglass_library(project_ops
    SOURCES "${CMAKE_CURRENT_LIST_DIR}/project_ops.cc"
    DEPS undo base test_support)
  target_include_directories(sandglass_project_ops PUBLIC "${PROJECT_SOURCE_DIR}")
endif()
