#include "report/page/html.h"

namespace antisd::inline report {
namespace {

// Colours are variables, so that charts and tables agree and printing can change them in one place.
constexpr std::string_view kCommonStyle = R"css(
:root { color-scheme: light dark; --back: #fff; --text: #1b1f24; --faint: #6b7280; --line: #d9dde3; --panel: #f6f7f9;
  --accent: #2563eb; --warn: #b45309; --bad: #b91c1c; --good: #15803d; }
@media (prefers-color-scheme: dark) { :root { --back: #14171c; --text: #e6e8eb; --faint: #9aa3ae; --line: #333a44;
  --panel: #1c2128; --accent: #7aa7ff; --warn: #f0b45a; --bad: #f08a8a; --good: #6fce8f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem; max-width: 78rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .4rem; } h2 { font-size: 1.15rem; margin: 1.8rem 0 .5rem; }
p, .note { max-width: 52rem; } .note, figcaption { color: var(--faint); font-size: .88rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th:first-child, td:first-child { text-align: left; }
pre, code { font-family: ui-monospace, monospace; font-size: .86rem; }
pre { background: var(--panel); padding: .7rem; white-space: pre-wrap; }
@media print { :root { color-scheme: light; --back: #fff; --text: #000; --faint: #444; --line: #bbb; --panel: #f4f4f4; }
  body { max-width: none; padding: 0; } figure, table, pre { break-inside: avoid; } }
)css";

}  // namespace

std::string escape_html(std::string_view text) {
  // Uses the JSON writer's repair of ill-formed bytes, so that pages and rows show the same.
  const std::string line = to_json_line(Json(std::string(text)));
  const std::string clean = Json::parse(line).get<std::string>();
  std::string out;
  out.reserve(clean.size());
  for (const char c : clean) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string script_json(const Json& value) {
  return script_json_text(to_json_line(value));
}

std::string script_json_text(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 64);
  for (const char c : json) {
    // These occur only inside JSON strings, where an escape means the same.
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string render(const Document& document) {
  const std::string nonce =
      document.nonce.empty() ? "" : " nonce=\"" + escape_html(document.nonce) + "\"";
  std::string out =
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>";
  out += escape_html(document.title);
  out += "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style" + nonce + ">";
  out += kCommonStyle;
  out += document.style;
  out += "</style>\n</head>\n<body>\n";
  out += document.body;
  if (!document.script.empty())
    out += "\n<script" + nonce + ">\n" + document.script + "\n</script>";
  out += "\n</body>\n</html>\n";
  return out;
}

}  // namespace antisd::inline report
