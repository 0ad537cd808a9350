#include "report/dashboard.h"

#include <thread>

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/http/access.h"
#include "io/http/testing.h"
#include "io/json.h"
#include "report/testing.h"

namespace antisd::inline report {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::make_run;
using testing::metrics_row;
using ::testing::Not;
using testing::put;

// A dashboard that serves while the object lives.
class Serving {
 public:
  explicit Serving(DashboardOptions options)
      : dashboard_(std::move(options)), thread_([this] { dashboard_.serve(); }) {}
  ~Serving() {
    dashboard_.stop();
    thread_.join();
  }

  testing::Answer get(const std::string& path, const HttpFields& fields = {}) {
    return testing::ask(dashboard_.port(), "GET", path, fields);
  }
  Json json(const std::string& path) { return parse_json(get(path).body, path); }
  Dashboard& dashboard() { return dashboard_; }

 private:
  Dashboard dashboard_;
  std::thread thread_;
};

DashboardOptions options_for(const fs::path& folder) {
  return {.folder = folder, .port = 0, .look_seconds = 0.02};
}

// Asks until `is_there` returns true; the files are checked every 20 ms.
Json eventually(Serving& serving, const std::string& path,
                const std::function<bool(const Json&)>& is_there) {
  for (int i = 0; i < 500; ++i) {
    Json answer = serving.json(path);
    if (is_there(answer)) return answer;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  ADD_FAILURE() << "never came: " << path;
  return serving.json(path);
}

TEST(Dashboard, ThePageLoadsNothingFromElsewhere) {
  const testing::TemporaryFolder folder;
  Serving serving(options_for(folder.path()));
  const testing::Answer page = serving.get("/");
  EXPECT_EQ(page.status, 200);
  const std::string policy = page.field("Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'; script-src 'nonce-"));
  const std::size_t at = policy.find("nonce-") + 6;
  const std::string nonce = policy.substr(at, policy.find('\'', at) - at);
  EXPECT_THAT(page.body, HasSubstr("<script nonce=\"" + nonce + "\">"));
  EXPECT_THAT(serving.get("/").body, Not(HasSubstr(nonce))) << "a new one each time";
}

TEST(Dashboard, ARunGrowsAndAnotherBegins) {
  const testing::TemporaryFolder folder;
  make_run(folder / "a", "grpo", 0, 5);
  Serving serving(options_for(folder.path()));
  const Json all = serving.json("/api/update?since=0");
  EXPECT_EQ(all["reset"], true);
  EXPECT_EQ(all["runs"][0]["rows"]["last"], 5);
  const std::string known = fmt::format("/api/update?since={}&server={}", all["version"].get<int>(),
                                        all["server"].get<std::string>());
  EXPECT_TRUE(serving.json(known)["runs"].empty());
  put(folder / "a" / fs::path("metrics.jsonl"), metrics_row(6, 0.6), true);
  const Json news =
      eventually(serving, known, [](const Json& answer) { return !answer["runs"].empty(); });
  EXPECT_EQ(news["runs"][0]["rows"]["from"], 6);
  EXPECT_FALSE(news.contains("reset"));
  make_run(folder / "sweep" / fs::path("b c"), "antisd", 1, 2);
  const Json two = eventually(serving, known, [](const Json& answer) {
    return answer.contains("set") && answer["set"]["order"].size() == 2;
  });
  EXPECT_EQ(two["set"]["series"][1]["name"], "sweep/b c");
  EXPECT_EQ(serving.json("/api/update?since=99&server=another")["reset"], true);
}

TEST(Dashboard, SamplesOfAStep) {
  const testing::TemporaryFolder folder;
  make_run(folder / "a", "grpo", 0, 5);
  put(folder / "a" / fs::path("rollouts/step-000003.jsonl"),
      testing::rollout_line(3, "p", 0, "<b>text</b>"));
  Serving serving(options_for(folder.path()));
  EXPECT_EQ(serving.json("/api/samples?run=r1&step=3")["rows"][0]["text"], "<b>text</b>");
  for (const char* query : {"run=r9&step=3", "run=r1&step=x", "run=r1", "run=../a&step=3",
                            "run=r1&step=-1", "run=r1&step=99999999999999999999"})
    EXPECT_EQ(serving.get(std::string("/api/samples?") + query).status, 404) << query;
}

TEST(Dashboard, NothingOutsideTheFolder) {
  const testing::TemporaryFolder folder;
  put(folder / "secret.txt", "TOP SECRET");
  make_run(folder / "outside", "secret-method", 0, 5);
  make_run(folder / "runs" / fs::path("a"), "grpo", 0, 5);
  put(folder / "outside" / fs::path("dumps/step-000003.jsonl"),
      testing::rollout_line(3, "p", 0, "TOP SECRET"));
  fs::create_directory_symlink(folder / "outside", folder / "runs" / fs::path("linked"));
  fs::create_directory_symlink(folder / "outside" / fs::path("dumps"),
                               folder / "runs" / fs::path("a/rollouts"));
  fs::create_symlink(folder / "secret.txt", folder / "runs" / fs::path("a/log.txt"));
  Serving serving(options_for(folder / "runs"));
  const std::string all = serving.get("/api/update").body;
  EXPECT_EQ(parse_json(all, "")["runs"].size(), 1u);
  EXPECT_THAT(all, Not(HasSubstr("secret")));
  EXPECT_TRUE(serving.json("/api/samples?run=r1&step=3")["rows"].empty());
  for (const char* path :
       {"/../secret.txt", "/..%2fsecret.txt", "/%2e%2e/secret.txt", "/a/metrics.jsonl",
        "/a/../../secret.txt", "//etc/passwd", "/api/samples/../../secret.txt", "/api/update/x",
        "/runs/a/config.toml"}) {
    const testing::Answer answer = serving.get(path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("SECRET")));
  }
  const int port = serving.dashboard().port();
  EXPECT_EQ(testing::ask(port, "POST", "/api/update", {}, "x").status, 405);
  EXPECT_EQ(testing::ask(port, "DELETE", "/").field("Allow"), "GET, HEAD");
  EXPECT_EQ(testing::ask(port, "POST", "/", {}, std::string(5000, 'x')).status, 413);
}

TEST(Dashboard, ForeignHostNamesAreRefused) {
  const testing::TemporaryFolder folder;
  Serving serving(options_for(folder.path()));
  EXPECT_EQ(serving.get("/api/update", {{"Host", "evil.example:8484"}}).status, 403);
  EXPECT_EQ(serving.get("/", {{"Host", "127.0.0.1.evil.example"}}).status, 403);
  EXPECT_EQ(serving.get("/api/update", {{"Host", "localhost:1"}}).status, 200);
  EXPECT_EQ(serving.get("/api/update", {{"Host", "[::1]:1"}}).status, 200);
  EXPECT_EQ(serving.get("http://evil.example/api/update", {{"Host", "localhost"}}).status, 403);
  EXPECT_EQ(serving.get("http://localhost/api/update", {{"Host", "evil.example"}}).status, 200);
}

TEST(Dashboard, ATokenElsewhere) {
  const testing::TemporaryFolder folder;
  make_run(folder / "a", "grpo", 0, 1);
  DashboardOptions options = options_for(folder.path());
  options.host = "0.0.0.0";
  Serving serving(options);
  const std::string url = serving.dashboard().url();
  const std::string token = url.substr(url.find("?token=") + 7);
  EXPECT_EQ(token.size(), 32u);
  for (const char* path :
       {"/", "/api/update", "/api/samples?run=r1&step=1", "/?token=wrong", "/?token="})
    EXPECT_EQ(serving.get(path).status, 401) << path;
  EXPECT_EQ(serving.get("/api/update", {{"Cookie", "antisd_token=" + token + "0"}}).status, 401);
  EXPECT_EQ(serving.get("/api/update", {{"Authorization", "Bearer "}}).status, 401);
  const testing::Answer first = serving.get("/?token=" + token);
  EXPECT_EQ(first.status, 303);
  EXPECT_THAT(first.field("Set-Cookie"), HasSubstr("HttpOnly; SameSite=Strict"));
  EXPECT_EQ(serving.get("/", {{"Cookie", "x=1; antisd_token=" + token}}).status, 200);
  EXPECT_EQ(serving.get("/api/update", {{"Authorization", "Bearer " + token}}).status, 200);
  EXPECT_EQ(serving.get("/api/update?token=" + token, {{"Host", "a.name"}}).status, 200);
}

TEST(Dashboard, MistakesOfTheUser) {
  const testing::TemporaryFolder folder;
  EXPECT_THAT(testing::error_of([&] { Dashboard({.folder = folder / "absent"}); }),
              HasSubstr("no such folder"));
  const Dashboard first(options_for(folder.path()));
  DashboardOptions options = options_for(folder.path());
  options.port = first.port();
  EXPECT_THAT(testing::error_of([&] { Dashboard{options}; }),
              HasSubstr("--port 0 takes a free port"));
  options.port = 0;
  options.token = "a;b";
  EXPECT_THAT(testing::error_of([&] { Dashboard{options}; }), HasSubstr("--token"));
  options.token = "";
  options.host = "203.0.113.7";
  EXPECT_THAT(testing::error_of([&] { Dashboard{options}; }), HasSubstr("203.0.113.7"));
}

TEST(Dashboard, StopsBeforeItServes) {
  const testing::TemporaryFolder folder;
  Dashboard dashboard(options_for(folder.path()));
  dashboard.stop();
  dashboard.serve();  // returns
}

TEST(Dashboard, Comparisons) {
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  for (const auto& [a, b] : std::vector<std::pair<std::string, std::string>>{
           {"abc", "abd"}, {"abc", "ab"}, {"ab", "abc"}, {"", "a"}, {"a", ""}, {"aa", "a"}})
    EXPECT_FALSE(equal_in_constant_time(a, b)) << a << " " << b;
  EXPECT_TRUE(is_loopback("127.0.0.1") && is_loopback("localhost") && is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0") || is_loopback("") || is_loopback("localhost.evil.example") ||
               is_loopback("127.evil.example"));
}

}  // namespace
}  // namespace antisd::inline report
