#include "text/chat_template.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "text/tokenizer/sha256_for_tests.h"

namespace antisd::inline text {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Json fixture_json(const std::string& name) {
  const auto path = testing::fixture(name);
  return parse_json(read(path), path.string());
}

// The text, or nothing if parsing or rendering throws an InputError.
std::optional<std::string> rendered(const std::string& source, const Json& variables) {
  try {
    return ChatTemplate(source).render(variables);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::string failure(const std::string& source, const Json& variables = Json::object(),
                    TemplateLimits limits = {}) {
  return testing::error_of([&] { ChatTemplate(source, "t", limits).render(variables); });
}

// Recorded with transformers by tools/record_template_fixtures.py.
TEST(ChatTemplate, RendersSnippetsAsTransformersDoes) {
  const Json recorded = fixture_json("text/template_snippets.json");
  for (const Json& snippet : recorded["snippets"]) {
    const auto source = snippet["template"].get<std::string>();
    const auto text = rendered(source, recorded["variables"]);
    if (snippet["text"].is_null()) {
      EXPECT_FALSE(text.has_value()) << snippet["name"] << "\n" << source << "\n" << *text;
    } else if (!text) {
      ADD_FAILURE() << snippet["name"] << "\n"
                    << source << "\n"
                    << failure(source, recorded["variables"]);
    } else {
      EXPECT_EQ(*text, snippet["text"].get<std::string>()) << snippet["name"] << "\n" << source;
    }
  }
}

std::string real_template(const std::filesystem::path& path) {
  if (path.extension() != ".json") return read(path);
  return parse_json(read(path), path.string())["chat_template"].get<std::string>();
}

TEST(ChatTemplate, RendersRealTemplatesAsTransformersDoes) {
  const auto models = testing::shared_data("models");
  ANTISD_NEEDS_SHARED(models);
  const Json recorded = fixture_json("text/template_chats.json");
  std::map<std::string, Json> conversations;
  for (const Json& conversation : recorded["conversations"]) {
    conversations[conversation["name"].get<std::string>()] = conversation["variables"];
  }
  ASSERT_GT(recorded["renders"].size(), 500u);
  for (const Json& row : recorded["renders"]) {
    const auto name = row[0].get<std::string>();
    Json variables = recorded["special_tokens"];
    variables["tools"] = nullptr;
    variables["documents"] = nullptr;
    variables["add_generation_prompt"] = row[2];
    variables.update(conversations.at(row[1].get<std::string>()));
    const std::string source = real_template(models / name);
    const auto text = rendered(source, variables);
    if (row[3].is_null()) {
      EXPECT_FALSE(text.has_value()) << row << "\n" << *text;
    } else if (!text) {
      ADD_FAILURE() << row << "\n" << failure(source, variables);
    } else {
      EXPECT_EQ(text->size(), row[3][0].get<std::size_t>()) << row << "\n" << *text;
      EXPECT_EQ(testing::sha256(*text).substr(0, 32), row[3][1].get<std::string>()) << row << "\n"
                                                                                    << *text;
    }
  }
}

TEST(ChatTemplate, ErrorsNameTemplateLineAndRemedy) {
  EXPECT_EQ(failure("a\n{{ messages[0].role }}"),
            "t:2: 'messages' is undefined; pass it, or fix the template with `is defined` or the "
            "`default` filter");
  EXPECT_THAT(failure("{% if x %}\n\n{{ y }}\n"), StartsWith("t:3: Unexpected end of template"));
  EXPECT_THAT(failure("\n\n{{ a b }}"), StartsWith("t:3: expected token 'end of print statement'"));
  EXPECT_THAT(failure("{{ 1 }}\n{{ raise_exception('roles must alternate') }}"),
              StartsWith("t:2: roles must alternate;"));
  EXPECT_THAT(failure("{% macro m(x) %}\n{{ x + 1 }}\n{% endmacro %}\n{{ m() }}"),
              StartsWith("t:2: parameter 'x' was not provided"));
  EXPECT_THAT(failure("{{ {}.x.y }}"), StartsWith("t:1: 'dict object' has no attribute 'x'"));
  EXPECT_THAT(failure("{{ [1][5].y }}"), StartsWith("t:1: list object has no element 5"));
  EXPECT_THAT(failure("{{ [].append(1) }}"), HasSubstr("unsafe"));
  EXPECT_THAT(failure("x{{ 'a'|nope }}"), StartsWith("t:1: No filter named 'nope'."));
  EXPECT_THAT(failure("\xff"), HasSubstr("not UTF-8"));
  EXPECT_THAT(failure("x", Json::array()), HasSubstr("not an object"));
}

// Without limits, each would run for ever or exhaust memory or stack.
TEST(ChatTemplate, LimitsStopHostileTemplates) {
  const auto nested = [](const std::string& open, const std::string& close, int times) {
    std::string text;
    for (int i = 0; i < times; ++i)
      text += open;
    text += "1";
    for (int i = 0; i < times; ++i)
      text += close;
    return text;
  };
  const TemplateLimits kSmall = {.steps = 500'000,  // fast under sanitizers too
                                 .output_bytes = std::size_t{16} << 20,
                                 .memory_bytes = std::size_t{64} << 20};
  const std::string thousand = "range(1000)";
  const std::vector<std::string> hostile = {
      "{% for a in " + thousand + " %}{% for b in " + thousand + " %}{% for c in " + thousand +
          " %}{% endfor %}{% endfor %}{% endfor %}",
      "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
      "{% macro m(n) %}{% if true %}{% for i in [1] %}{{ m(n + 1) }}{% endfor %}{% endif %}"
      "{% endmacro %}{{ m(0) }}",
      "{% macro m(n) %}{{ [[[[m(n)]]]] }}{% endmacro %}{{ m(0) }}",
      "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
      "{{ 'a' * 1000000000 }}",
      "{{ [1] * 1000000000 }}",
      "{{ 'a' * 9223372036854775807 }}",
      "{{ range(1000000000000) }}",
      "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s ~ ns.s %}"
      "{% endfor %}",
      "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}"
      "{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}"
      "{% endfor %}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}"
      "{% endfor %}{{ ns.s }}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}"
      "{% endfor %}{{ ns.s|tojson }}",
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(100) %}{% set ns.a = [ns.a, ns.a] %}"
      "{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
      "{% set ns = namespace(s=[1]) %}{% for i in range(10000) %}{% set ns.s = [ns.s] %}{% endfor "
      "%}",
      "{% set ns = namespace(s={}) %}{% for i in range(10000) %}{% set ns.s = {'a': ns.s} %}"
      "{% endfor %}",
      "{% set s = 'a' * 10000000 %}{% for i in range(100) %}{{ s }}{% endfor %}",
      "{% set s = 'a' * 10000000 %}{% for i in range(100000) %}{{ s.replace('a', 'b')|length }}"
      "{% endfor %}",
      "{% set s = 'a' * 5000000 %}{% for i in range(100000) %}{% set t = s.find('a' * 2500000 ~ "
      "'b') "
      "%}{% endfor %}",
      "{{ 'aaaaaaaaaaaaaaaa'|map('center', 60000000)|list|length }}",
      "{{ '%10000000d' % 1 }}",
      "{{ 'a'.replace('', 'b' * 200000000) }}",
      "{{ 2 ** 64 }}",
      "{{ 9223372036854775807 + 1 }}",
      "{{ -9223372036854775807 - 2 }}",
      "{{ (-9223372036854775807 - 1) // -1 }}",
      "{{ " + nested("(", ")", 5000) + " }}",
      "{{ " + nested("[", "]", 5000) + " }}",
      "{{ " + nested("not ", "", 5000) + " }}",
      "{{ " + nested("-", "", 5000) + " }}",
      "{{ " + nested("1 if 1 else ", "", 5000) + " }}",
      "{{ " + nested("1 + ", "", 5000) + " }}",
      "{{ " + nested("", "|string", 5000) + " }}",
      "{{ " + nested("", ".a", 5000) + " }}",
      nested("{% if 1 %}", "{% endif %}", 5000),
      "{% set " + nested("(", ")", 5000) + " = 1 %}",
  };
  for (const std::string& source : hostile) {
    EXPECT_THAT(failure(source, Json::object(), kSmall), StartsWith("t:1: "))
        << source.substr(0, 200);
  }
}

// Objects that outlive their scope must neither leak (the address sanitizer checks) nor recurse
// when destroyed.
TEST(ChatTemplate, ChainsOfObjectsEndQuietly) {
  const std::vector<std::string> sources = {
      "{% set ns = namespace() %}{% set ns.x = ns %}",
      "{% set ns = namespace(x=1) %}{% for i in range(20000) %}{% set ns.x = namespace(x=ns.x) %}"
      "{% endfor %}",
      "{% set ns = namespace(m=1) %}{% for i in range(20000) %}{% macro m() %}{% endmacro %}"
      "{% set before = ns.m %}{% set ns.m = m %}{% endfor %}",
      "{% set ns = namespace(x=1) %}{% for i in range(20000) %}{% set ns.x = [ns.x].copy %}"
      "{% endfor %}",
      "{% set ns = namespace(x=1) %}{% for i in range(20000) %}{% for y in [ns.x] %}"
      "{% set ns.x = loop %}{% endfor %}{% endfor %}",
      "{% for i in [1] %}{{ loop.changed(loop, loop.changed) }}{% endfor %}",
      "{% set ns = namespace(x=1) %}{% for i in range(20000) %}{% set ns.x = cycler(ns.x).next %}"
      "{% endfor %}",
      "{% set ns = namespace(x=1) %}{% for i in range(20000) %}{% set ns.x = joiner(ns.x) %}"
      "{% endfor %}",
  };
  for (const std::string& source : sources) {
    EXPECT_NO_THROW(ChatTemplate(source).render(Json::object())) << source;
  }
}

TEST(ChatTemplate, VariablesMayHoldAnything) {
  const ChatTemplate print("{{ x }}", "t");
  EXPECT_EQ(print.render({{"x",
                           "\xff"
                           "a"}}),
            "\xEF\xBF\xBD"
            "a");
  EXPECT_EQ(print.render({{"x", {{"a", {1, 2.5, nullptr, true, "b"}}}}}),
            "{'a': [1, 2.5, None, True, 'b']}");
  Json deep = 1;
  for (int i = 0; i < 1000; ++i)
    deep = Json::array({deep});
  EXPECT_THAT(testing::error_of([&] { print.render({{"x", deep}}); }), HasSubstr("nested"));
  EXPECT_THAT(testing::error_of([&] {
                print.render({{"x", 18446744073709551615u}});
              }),
              HasSubstr("64 bits"));
  Json wide = Json::object();
  for (int i = 0; i < 2000; ++i)
    wide["key" + std::to_string(i)] = i;
  EXPECT_EQ(ChatTemplate("{{ x.key0 }} {{ x['key1999'] }} {{ x.nope }}").render({{"x", wide}}),
            "0 1999 ");
}

TEST(ChatTemplate, LoadsFromAModelDirectory) {
  const testing::TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder / name) << text;
  };
  const auto load = [&] { return ChatTemplate::load(folder.path()).render(Json::object()); };
  EXPECT_THAT(testing::error_of(load), HasSubstr("no chat template"));
  write("chat_template.json", R"({"chat_template": "from json"})");
  EXPECT_EQ(load(), "from json");
  write("tokenizer_config.json", R"({"eos_token": "x"})");
  EXPECT_EQ(load(), "from json");
  write("tokenizer_config.json", R"({"chat_template": "from config"})");
  EXPECT_EQ(load(), "from config");
  write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                                       {"name": "default", "template": "d"}]})");
  EXPECT_EQ(load(), "d");
  write("tokenizer_config.json", R"({"chat_template": 5})");
  EXPECT_THAT(testing::error_of(load), HasSubstr("tokenizer_config.json"));
  write("chat_template.jinja", "from {{ 'jinja' }}\n");
  EXPECT_EQ(load(), "from jinja");
  write("chat_template.jinja", "{% if %}");
  EXPECT_THAT(testing::error_of(load), HasSubstr("chat_template.jinja:1: "));
}

TEST(ChatTemplate, NamesTheVariablesThatItHasAPlaceFor) {
  const ChatTemplate chat(
      "{% set mood = mood | default('calm') %}{% for m in messages %}{{ m.role }}{% endfor %}"
      "{% if enable_thinking is defined and not enable_thinking %}'tools'{% endif %}"
      "{% macro f(a, b=style) %}{{ a['documents'] }}{% endmacro %}");
  const std::vector<std::string> names = chat.names();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_THAT(names, ::testing::IsSupersetOf({"enable_thinking", "messages", "mood", "style"}));
  for (const char* other : {"role", "tools", "documents", "default", "calm"})
    EXPECT_THAT(names, ::testing::Not(::testing::Contains(other)));
}

TEST(ChatTemplate, RendersInSeveralThreadsAtATime) {
  const ChatTemplate chat(
      "{% macro m(x) %}{{ x.role ~ ': ' ~ x.content }}{% endmacro %}"
      "{% for x in messages %}{{ m(x) }}{{ '\\n' }}{% endfor %}");
  std::vector<std::thread> threads;
  std::vector<std::string> texts(4);
  for (std::size_t t = 0; t < texts.size(); ++t) {
    threads.emplace_back([&, t] {
      Json messages = Json::array();
      for (int i = 0; i < 50; ++i) {
        messages.push_back({{"role", "user"}, {"content", std::to_string(t)}});
      }
      for (int i = 0; i < 50; ++i)
        texts[t] = chat.render({{"messages", messages}});
    });
  }
  for (auto& thread : threads)
    thread.join();
  for (std::size_t t = 0; t < texts.size(); ++t) {
    std::string expected;
    for (int i = 0; i < 50; ++i)
      expected += "user: " + std::to_string(t) + "\n";
    EXPECT_EQ(texts[t], expected);
  }
}

}  // namespace
}  // namespace antisd::inline text
