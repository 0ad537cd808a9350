# antisd_embed(TARGET HEADER FUNCTION FILE...): embeds the concatenated files as the text that
# std::string_view antisd::FUNCTION(), declared in HEADER, returns.
function(antisd_embed target header function)
  set(text "")
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(READ "${file}" part)
    string(APPEND text "R\"__text__(${part})__text__\"\n")
  endforeach()
  set(generated "${CMAKE_BINARY_DIR}/generated/${function}.cpp")
  file(CONFIGURE OUTPUT "${generated}" @ONLY CONTENT
    "#include \"@header@\"\n\nstd::string_view antisd::@function@() {\n  return\n@text@;\n}\n")
  target_sources(${target} PRIVATE "${generated}")
endfunction()
