// Parts of a self-contained HTML page: escaped text, data for a script, a common style.
//
//   Document document{.title = "Run 3"};
//   document.body = "<h1>" + escape_html(name) + "</h1>";
//   document.script = "const data = " + script_json(rows) + ";";
//   write(render(document));
#pragma once

#include <string>
#include <string_view>

#include "io/json.h"

namespace antisd::inline report {

// Text for an element's content or a quoted attribute; bytes that are not UTF-8 become U+FFFD.
std::string escape_html(std::string_view text);

// JSON for use inside <script>: it can neither end the element nor open a comment.
std::string script_json(const Json& value);
// The same for existing JSON text.
std::string script_json_text(std::string_view json);

struct Document {
  std::string title;        // plain text
  std::string style = {};   // CSS after the common one
  std::string body = {};    // HTML
  std::string script = {};  // runs after the body is parsed
  std::string nonce = {};   // of style and script, for a Content-Security-Policy header
};

// A page that loads nothing else. Light and dark follow the reader's system, print is light, and a
// narrow screen has one column.
std::string render(const Document& document);

}  // namespace antisd::inline report
