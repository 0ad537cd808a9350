#include "report/page/html.h"

#include <gtest/gtest.h>

namespace antisd::inline report {
namespace {

TEST(Html, TextShowsAsText) {
  EXPECT_EQ(escape_html("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
  EXPECT_EQ(escape_html("a\xff z"), "a\xEF\xBF\xBD z");
  EXPECT_EQ(escape_html("line\nnext"), "line\nnext");
}

TEST(Html, DataCannotEndItsScript) {
  const Json value = {{"text", "</script><!-- & \xE2\x80\xA8"}};
  const std::string text = script_json(value);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  EXPECT_EQ(Json::parse(text), value);
  EXPECT_EQ(script_json_text(to_json_line(value)), text);
}

TEST(Html, ANonceForStyleAndScript) {
  const std::string page = render({.title = "t", .script = "let a;", .nonce = "x\"y"});
  EXPECT_NE(page.find("<style nonce=\"x&quot;y\">"), std::string::npos);
  EXPECT_NE(page.find("<script nonce=\"x&quot;y\">"), std::string::npos);
}

TEST(Html, APageLoadsNothing) {
  const std::string page = render({.title = "<t>", .body = "<p>x</p>", .script = "let a = 1;"});
  EXPECT_NE(page.find("<title>&lt;t&gt;</title>"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);
  EXPECT_LT(page.find("<p>x</p>"), page.find("let a = 1;"));
}

}  // namespace
}  // namespace antisd::inline report
