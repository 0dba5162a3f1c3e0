# What `make install` puts where, below the prefix. Headers keep their folders, because they include each
# other as "base/..." and "undo/...": the include root is include/sandglass.

install(TARGETS sandglass RUNTIME DESTINATION bin)
install(TARGETS sandglass-shim RUNTIME DESTINATION libexec/sandglass)
install(TARGETS sandglass_undo sandglass_base ARCHIVE DESTINATION lib)

# Of undo only what a caller may use, of base everything.
install(FILES
    src/undo/capture_stats.h
    src/undo/interceptor.h
    src/undo/safeguard.h
    src/undo/types.h
    src/undo/undo_log.h
  DESTINATION include/sandglass/undo)
install(DIRECTORY src/base/ DESTINATION include/sandglass/base
  FILES_MATCHING PATTERN "*.h" PATTERN "test_dir.h" EXCLUDE)

install(DIRECTORY docs/man/ DESTINATION share/man/man1 FILES_MATCHING PATTERN "*.1")
install(FILES LICENSE-MIT LICENSE-APACHE DESTINATION share/doc/sandglass)

# The program itself writes the completion scripts, under the name that each shell looks for.
function(sandglass_install_completion shell folder name)
  set(script "${PROJECT_BINARY_DIR}/completions/${name}")
  install(CODE "file(MAKE_DIRECTORY \"${PROJECT_BINARY_DIR}/completions\")
    execute_process(COMMAND \"$<TARGET_FILE:sandglass>\" completion ${shell}
      OUTPUT_FILE \"${script}\" COMMAND_ERROR_IS_FATAL ANY)")
  install(FILES "${script}" DESTINATION ${folder})
endfunction()
sandglass_install_completion(bash share/bash-completion/completions sandglass)
sandglass_install_completion(zsh share/zsh/site-functions _sandglass)
sandglass_install_completion(fish share/fish/vendor_completions.d sandglass.fish)
