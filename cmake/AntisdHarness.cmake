# antisd_embed_harness(TARGET FILE...): the files one after the other as antisd::harness_text() of TARGET.
function(antisd_embed_harness target)
  set(text "")
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" part)
    string(APPEND text "R\"__py__(${part})__py__\"\n")
  endforeach()
  set(generated "${CMAKE_BINARY_DIR}/generated/harness_text.cpp")
  file(CONFIGURE OUTPUT "${generated}" @ONLY CONTENT
    "#include \"reward/harness_text.h\"\n\nstd::string_view antisd::harness_text() {\n  return\n@text@;\n}\n")
  target_sources(${target} PRIVATE "${generated}")
endfunction()
