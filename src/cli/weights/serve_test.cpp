// `serve` and `generate --chat` as a user runs them.

#include <csignal>

#include "cli/command_testing.h"
#include "io/http/testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using testing::Answer;
using testing::ask;
using ::testing::HasSubstr;
using testing::Outcome;
using ::testing::StartsWith;

const fs::path kRepository = ANTISD_SOURCE_DIR;
const std::string kCountdown = (kRepository / "models/countdown").string();

class Serve : public testing::CommandTest {
 protected:
  // The port of a server that was launched, once it says so.
  int port_of_server() const {
    for (int i = 0; i < 3000; ++i) {
      const std::string said = fs::exists(folder_ / "out") ? read_file(folder_ / "out") : "";
      if (said.ends_with('\n')) return std::stoi(said.substr(said.rfind(':') + 1));
      usleep(20'000);
    }
    ADD_FAILURE() << "the server did not start: " << read_file(folder_ / "err");
    return 0;
  }

  // One check of tools/check_serve.py, which uses the openai package.
  void check(const std::string& name) const {
    const fs::path python = kRepository / ".deps/reference/bin/python";
    if (!fs::exists(python)) GTEST_SKIP() << "needs `make references`";
    const std::string command =
        fmt::format("'{}' '{}' '{}/antisd' '{}' --only {} >'{}' 2>&1", python.string(),
                    (kRepository / "tools/check_serve.py").string(), ANTISD_BINARY_DIR, kCountdown,
                    name, path("said"));
    EXPECT_EQ(std::system(command.c_str()), 0) << read_file(folder_ / "said");
    EXPECT_THAT(read_file(folder_ / "said"), HasSubstr(name)) << "it has not run";
  }
};

TEST_F(Serve, Models) {
  check("models");
}
TEST_F(Serve, Chat) {
  check("chat");
}
TEST_F(Serve, Completions) {
  check("completions");
}
TEST_F(Serve, StopStrings) {
  check("stops");
}
TEST_F(Serve, ErrorsAreOpenAis) {
  check("errors");
}
TEST_F(Serve, AHundredClientsGetWhatEachWouldGetAlone) {
  check("many_clients");
}
TEST_F(Serve, WhoLeavesFreesItsPlace) {
  check("disconnects");
}
TEST_F(Serve, QueueTokenAndEnd) {
  check("limits");
}

// Without the openai package: a model without a tokenizer, and one line when it is ready.
TEST_F(Serve, IdsWithoutATokenizer) {
  const std::string model = testing::fixture("model/llama_mha_tied").string();
  const pid_t server = launch("serve --port 0 --name ids --context 20 " + model);
  const int port = port_of_server();
  EXPECT_THAT(read_file(folder_ / "err"),
              StartsWith(fmt::format("serving ids at http://127.0.0.1:{}/v1, context 20", port)));
  const auto post = [&](const std::string& path, const std::string& body) {
    return ask(port, "POST", path, {}, body);
  };
  const std::string flags = "generate --seed 4 --max-tokens 8 --ignore-eos " + model;
  write("in", R"({"prompt_ids":[1,2,3]})");
  ASSERT_EQ(shell("antisd " + flags + " <in >alone 2>said"), 0) << read_file(folder_ / "said");
  const Json alone = Json::parse(read_file(folder_ / "alone"));
  const Answer answer =
      post("/v1/completions", R"({"prompt":[1,2,3],"seed":4,"max_tokens":8,"ignore_eos":true,)"
                              R"("return_token_ids":true,"logprobs":0})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json choice = Json::parse(answer.body)["choices"][0];
  EXPECT_EQ(choice["token_ids"], alone["ids"]);
  EXPECT_EQ(choice["logprobs"]["token_logprobs"], alone["logp"]);
  EXPECT_EQ(choice["finish_reason"], "length");
  const Answer full =
      post("/v1/completions", R"({"prompt":[1,2,3],"max_tokens":500,"ignore_eos":true})");
  EXPECT_EQ(Json::parse(full.body)["usage"]["completion_tokens"], 17) << "up to the context";
  EXPECT_EQ(post("/v1/completions", R"({"prompt":"a"})").status, 400);
  EXPECT_EQ(post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}]})").status,
            400);
  kill(server, SIGINT);
  EXPECT_EQ(status_of(server), 130);
}

TEST_F(Serve, WhatItRefuses) {
  EXPECT_EQ(run("serve nowhere").status, 2);
  const Outcome open = run("serve --host 0.0.0.0 " + kCountdown);
  EXPECT_EQ(open.status, 2);
  EXPECT_THAT(open.err, HasSubstr("there is no token"));
  EXPECT_EQ(run("serve --token 'a b' " + kCountdown).status, 2);
  const Outcome taken = run("serve --host 203.0.113.7 --token x " + kCountdown);
  EXPECT_EQ(taken.status, 1);
  EXPECT_THAT(taken.err, HasSubstr("not this machine's"));
}

TEST_F(Serve, ChatOnATerminalOrAPipe) {
  const std::string flags = "generate --chat --temperature 0 --max-tokens 12 " + kCountdown;
  const auto say = [&](const Json& messages) {
    const Outcome outcome = run("generate --temperature 0 --max-tokens 12 " + kCountdown,
                                Json{{"messages", messages}}.dump());
    return Json::parse(outcome.out)["text"].get<std::string>();
  };
  const auto message = [](const char* role, const std::string& text) -> Json {
    return {{"role", role}, {"content", text}};
  };
  const std::string first = say(Json::array({message("user", "1 2 3")}));
  const std::string second = say(
      Json::array({message("user", "1 2 3"), message("assistant", first), message("user", "4 5")}));
  const Outcome outcome = run(flags, "1 2 3\n4 5\n/clear\n\n1 2 3\n/exit\nnever\n");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, first + "\n" + second + "\n" + first + "\n");
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(run(flags, "1 2 3").out, first + "\n") << "a last line without its end";
  const Outcome plain =
      run("generate --chat " + testing::fixture("model/llama_mha_tied").string(), "a\n");
  EXPECT_EQ(plain.status, 2);
  EXPECT_THAT(plain.err, HasSubstr("no chat template"));
  EXPECT_EQ(run("generate --chat --prompt a " + kCountdown).status, 2);
}

// The first ^C stops an answer that would take long; the program goes on with the next message.
TEST_F(Serve, AnInterruptStopsTheAnswerAndNotTheChat) {
  write("ask",
        "mkfifo line\n"
        "antisd generate --chat --ignore-eos --max-tokens 1000 --temperature 0 " +
            kCountdown +
            " <line >said 2>err &\nchat=$!\nexec 3>line\n"
            "echo 1 2 3 >&3\nwhile [ ! -s said ]; do sleep 0.02; done\n"
            "kill -INT $chat\n"
            "while [ $(wc -l <said) -lt 1 ]; do sleep 0.02; done\n"
            "echo /exit >&3\nexec 3>&-\nwait $chat\n");
  EXPECT_EQ(shell("sh ask"), 0) << read_file(folder_ / "err");
  const std::string said = read_file(folder_ / "said");
  EXPECT_THAT(said, HasSubstr("\n"));
}

}  // namespace
}  // namespace antisd::inline cli
