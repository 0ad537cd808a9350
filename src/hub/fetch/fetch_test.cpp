#include "hub/fetch/fetch.h"

#include <atomic>
#include <csignal>
#include <set>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "hub/fetch/testing.h"
#include "hub/testing.h"
#include "io/digest.h"
#include "io/json.h"

namespace antisd::inline hub {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using testing::LoopbackHub;
using ::testing::Not;

std::string sha256_of(const std::string& text) {
  Sha256 digest;
  digest.add(text);
  return digest.hex();
}

class FetchTest : public ::testing::Test {
 protected:
  FetchTest() { hub_.add_usual(); }

  FetchSettings settings() const {
    return {.endpoint = hub_.address(),
            .token = token_,
            .cache = hub_.cache(),
            .user_agent = "antisd/test",
            .silence_s = 5,
            .retry = {.attempts = 3, .backoff_s = 0.01, .max_wait_s = 0.1}};
  }
  FetchResult get(FetchRequest request) {
    reports_.clear();
    return fetch(settings(), request,
                 {.stop = [this] { return stop_.load(); },
                  .report = [this](const std::string& text) { reports_ += text + "\n"; },
                  .progress = {}});
  }
  FetchResult get_model() { return get({.name = "Qwen/Tiny"}); }
  std::string error(FetchRequest request) {
    return error_of([&] { get(request); });
  }

  // Paths below the cache, links with what they point to, regular files with their content.
  static std::string tree(const fs::path& folder) {
    std::set<std::string> lines;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().lexically_relative(folder).string();
      if (name.starts_with(".locks") || name.find("/trees") != std::string::npos ||
          name == "CACHEDIR.TAG" || name == "cli_check" || entry.is_directory())
        continue;
      lines.insert(name + (entry.is_symlink() ? " -> " + fs::read_symlink(entry.path()).string()
                                              : " = " + read_file(entry.path())));
    }
    std::string text;
    for (const std::string& line : lines)
      text += line + "\n";
    return text;
  }

  fs::path blobs() const { return hub_.cache() / "models--Qwen--Tiny/blobs"; }
  fs::path incomplete() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(blobs()))
      if (entry.path().extension() == ".incomplete") return entry.path();
    return {};
  }
  std::int64_t incomplete_size() const {
    const std::string name = sha256_of(LoopbackHub::weights()) + ".incomplete";
    std::error_code error;
    const auto size = fs::file_size(blobs() / name, error);
    return error ? 0 : static_cast<std::int64_t>(size);
  }
  bool has_ref() const { return fs::exists(hub_.cache() / "models--Qwen--Tiny/refs/main"); }

  LoopbackHub hub_;
  std::string token_, reports_;
  std::atomic<bool> stop_ = false;
};

TEST_F(FetchTest, TheCacheIsTheOneThatHuggingfaceHubWrites) {
  ANTISD_NEEDS_REFERENCE();
  hub_.start();
  const FetchResult ours = get({.name = "Qwen/Tiny", .patterns = {.include = {"*"}}});
  get({.name = "openai/gsm8k"});
  const testing::TemporaryFolder theirs;
  const auto python = [&](const std::string& variables, const std::string& code) {
    write_file_atomically(theirs / "script.py", "import huggingface_hub as h\n" + code);
    return std::system(fmt::format("env HF_HUB_DISABLE_XET=1 HF_HUB_DISABLE_PROGRESS_BARS=1 "
                                   "HF_ENDPOINT={} {} '{}' '{}' > '{}' 2>&1",
                                   hub_.address(), variables, testing::reference_python().string(),
                                   (theirs / "script.py").string(), (theirs / "out").string())
                           .c_str());
  };
  ASSERT_EQ(python("", fmt::format("h.snapshot_download('Qwen/Tiny', cache_dir='{0}/c')\n"
                                   "h.snapshot_download('openai/gsm8k', repo_type='dataset', "
                                   "cache_dir='{0}/c')\n",
                                   theirs.path().string())),
            0)
      << read_file(theirs / "out");
  EXPECT_EQ(tree(hub_.cache()), tree(theirs / "c"));

  // It reads what we fetched, without a server.
  hub_.stop();
  ASSERT_EQ(python("HF_HUB_OFFLINE=1",
                   fmt::format("c = '{}'\n"
                               "print(h.snapshot_download('Qwen/Tiny', cache_dir=c, "
                               "local_files_only=True))\n"
                               "print(open(h.hf_hub_download('Qwen/Tiny', 'config.json', "
                               "cache_dir=c)).read())\n"
                               "r = h.scan_cache_dir(c)\n"
                               "print(len(r.repos), len(r.warnings))\n",
                               hub_.cache().string())),
            0)
      << read_file(theirs / "out");
  EXPECT_EQ(read_file(theirs / "out"),
            ours.snapshot.folder.string() + "\n{\"model_type\": \"qwen3\"}\n\n2 0\n");
}

TEST_F(FetchTest, AModelIsItsSafetensorsConfigurationAndTokenizer) {
  hub_.start();
  const FetchResult got = get_model();
  EXPECT_EQ(got.files, 4);
  EXPECT_EQ(got.fetched, 4);
  EXPECT_EQ(read_file(got.snapshot.folder / "model.safetensors"), LoopbackHub::weights());
  EXPECT_EQ(read_file(got.snapshot.folder / "empty.txt"), "");
  EXPECT_FALSE(fs::exists(got.snapshot.folder / "pytorch_model.bin"));
  EXPECT_EQ(find_snapshot({RepoType::kModel, "Qwen/Tiny", ""}, hub_.cache())->folder,
            got.snapshot.folder);
  // Again: nothing moves.
  hub_.clear_log();
  EXPECT_EQ(get_model().fetched, 0);
  EXPECT_THAT(hub_.log(), Not(HasSubstr("resolve")));
  // By tag and by abbreviated commit, into refs/ as huggingface_hub has it.
  get({.name = "Qwen/Tiny", .revision = "v1"});
  EXPECT_EQ(read_file(hub_.cache() / "models--Qwen--Tiny/refs/v1"), got.snapshot.repo.revision);
  get({.name = "Qwen/Tiny", .revision = got.snapshot.repo.revision});
  EXPECT_FALSE(fs::exists(hub_.cache() / "models--Qwen--Tiny/refs" / got.snapshot.repo.revision));
}

TEST_F(FetchTest, PatternsChooseFiles) {
  hub_.start();
  EXPECT_EQ(
      get({.name = "Qwen/Tiny", .patterns = {.include = {"*.json"}, .exclude = {"tok*"}}}).files,
      1);
  EXPECT_THAT(error({.name = "Qwen/Tiny", .patterns = {.include = {"*.gguf"}, .exclude = {}}}),
              HasSubstr("none of its 5 files"));
}

TEST_F(FetchTest, FindsOutWhatItIs) {
  hub_.start();
  EXPECT_EQ(get({.name = "openai/gsm8k"}).snapshot.repo.type, RepoType::kDataset);
  EXPECT_THAT(error({.name = "openai/gsm8k", .type = RepoType::kModel}),
              AllOf(HasSubstr("no such model"), HasSubstr("check the name")));
  EXPECT_THAT(error({.name = "no/body"}), HasSubstr("neither a model nor a data set"));
  EXPECT_THAT(error({.name = "Qwen/Tiny", .revision = "v9"}), HasSubstr("no revision 'v9'"));
}

TEST_F(FetchTest, GoesOnAfterACutConnection) {
  hub_.start("--cut 7000 --cuts 2");
  get_model();
  EXPECT_EQ(
      read_file(blobs().parent_path() / "snapshots" /
                read_file(hub_.cache() / "models--Qwen--Tiny/refs/main") / "model.safetensors"),
      LoopbackHub::weights());
  EXPECT_THAT(hub_.log(), AllOf(HasSubstr("range=bytes=7000-"), HasSubstr("range=bytes=14000-")));
}

TEST_F(FetchTest, GoesOnInTheNextCommand) {
  hub_.start("--slow 0.02");
  std::thread stopper([&] {
    while (incomplete_size() < 3000)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    stop_ = true;
  });
  EXPECT_THROW(get_model(), FetchStopped);
  stopper.join();
  stop_ = false;
  const auto size = static_cast<std::int64_t>(fs::file_size(incomplete()));
  EXPECT_GT(size, 0);
  EXPECT_FALSE(has_ref());  // nobody takes it for a whole model
  hub_.start();
  hub_.clear_log();
  const FetchResult got = get_model();
  EXPECT_THAT(hub_.log(), HasSubstr(fmt::format("range=bytes={}-", size)));
  EXPECT_EQ(read_file(got.snapshot.folder / "model.safetensors"), LoopbackHub::weights());
  EXPECT_EQ(incomplete(), fs::path());
  EXPECT_TRUE(has_ref());
}

TEST_F(FetchTest, AServerWithoutRangesStartsAgain) {
  for (const char* fault : {"--no-range", "--wrong-range"}) {
    hub_.start(std::string("--cut 7000 ") + fault);
    const FetchResult got = get_model();
    EXPECT_EQ(read_file(got.snapshot.folder / "model.safetensors"), LoopbackHub::weights());
    fs::remove_all(hub_.cache());
  }
}

TEST_F(FetchTest, ALeftoverThatIsWrongIsReplaced) {
  hub_.start();
  const FetchResult got = get_model();
  const fs::path blob = fs::canonical(got.snapshot.folder / "model.safetensors");
  // As long as the file, longer than the file, and a damaged beginning.
  for (const std::size_t size : {20000u, 20001u, 100u}) {
    fs::remove(got.snapshot.folder / "model.safetensors");
    fs::remove(blob);
    write_file_atomically(blob.string() + ".incomplete", std::string(size, 'x'));
    get_model();
    EXPECT_EQ(read_file(blob), LoopbackHub::weights()) << size;
  }
}

TEST_F(FetchTest, AWrongHashIsNeverKept) {
  hub_.start("--corrupt 1");
  const FetchResult got = get_model();
  EXPECT_THAT(reports_, HasSubstr("the hash is wrong"));
  EXPECT_EQ(read_file(got.snapshot.folder / "model.safetensors"), LoopbackHub::weights());
  fs::remove_all(hub_.cache());
  hub_.start("--corrupt 9");
  EXPECT_THAT(error({.name = "Qwen/Tiny"}),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("has the hash"), HasSubstr("twice")));
  EXPECT_EQ(incomplete(), fs::path());
  EXPECT_FALSE(has_ref());
  fs::remove_all(hub_.cache());
  hub_.start("--etag " + std::string(40, 'a'));  // small files are checked too
  EXPECT_THAT(error({.name = "Qwen/Tiny", .patterns = {.include = {"config.json"}}}),
              HasSubstr("has the hash"));
}

TEST_F(FetchTest, TheTokenStaysWithTheHub) {
  token_ = "hf_secret";
  hub_.start("--token hf_secret");
  get_model();
  std::istringstream lines(hub_.log());
  int of_hub = 0, of_storage = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool sent = line.find("token=hf_secret") != std::string::npos;
    EXPECT_EQ(sent, line.starts_with("hub ")) << line;
    ++(line.starts_with("hub ") ? of_hub : of_storage);
  }
  EXPECT_GT(of_hub, 0);
  EXPECT_GT(of_storage, 0);
}

TEST_F(FetchTest, GatedRepositoriesSaySo) {
  hub_.start("--token hf_secret");
  EXPECT_THAT(error({.name = "Qwen/Tiny"}),
              AllOf(HasSubstr("gated"), HasSubstr("/Qwen/Tiny"), HasSubstr("hf auth login")));
  token_ = "hf_other";
  EXPECT_THAT(error({.name = "Qwen/Tiny"}), HasSubstr("this account has not got it"));
  EXPECT_THAT(hub_.log(), Not(HasSubstr("resolve")));
}

TEST_F(FetchTest, WaitsOutABusyHub) {
  hub_.start("--busy 2 --broken 1");  // three refusals for three attempts
  EXPECT_THAT(error({.name = "Qwen/Tiny"}), HasSubstr("429"));
  EXPECT_EQ(get_model().fetched, 4);
  hub_.start("--broken 99");
  EXPECT_THAT(error({.name = "Qwen/Tiny"}), HasSubstr("503"));
  const std::string address = hub_.address();
  hub_.stop();
  EXPECT_THAT(error({.name = "Qwen/Tiny"}),
              AllOf(HasSubstr("the connection failed"), HasSubstr(address)));
}

TEST_F(FetchTest, NamesFromTheServerCannotLeaveTheSnapshot) {
  hub_.start("--list ../../../../escaped.txt");
  EXPECT_THAT(error({.name = "Qwen/Tiny"}), HasSubstr("a dangerous name"));
  EXPECT_FALSE(fs::exists(hub_.cache()));
  hub_.start("--etag ../../x");
  EXPECT_THAT(error({.name = "Qwen/Tiny"}), HasSubstr("no usable ETag"));
  hub_.start("--escape file:///etc/passwd#");
  EXPECT_THAT(error({.name = "Qwen/Tiny"}), HasSubstr("not an http address"));
}

TEST(RepoListingTest, RefusesDangerousNames) {
  const auto listing = [](const std::vector<std::string>& names) {
    Json json = {{"sha", std::string(40, 'a')}, {"siblings", Json::array()}};
    for (const std::string& name : names)
      json["siblings"].push_back({{"rfilename", name}, {"size", 3}});
    return parse_listing(json.dump(), "hub");
  };
  EXPECT_EQ(listing({"a/b.json", ".gitattributes", "a..b"}).files.size(), 3u);
  for (const std::string name : {"../x", "/etc/x", "a/../../x", "./x", "a//b", "a\\b", "..", "",
                                 "a/", "x\ny", "a/..", "\x01"})
    EXPECT_THAT(error_of([&] { listing({name}); }), HasSubstr("a dangerous name")) << name;
  EXPECT_THAT(error_of([&] { listing({std::string(300, 'a')}); }), HasSubstr("a dangerous name"));
  EXPECT_THAT(error_of([&] { listing({"a", "a"}); }), HasSubstr("lists a twice"));
  EXPECT_THAT(error_of([&] { listing({"a", "a-b", "a/b"}); }), HasSubstr("lists a and a/b"));
  for (const char* text : {"", "[]", "{}", "<html>", R"({"sha": "main", "siblings": []})",
                           R"({"sha": "../../../x", "siblings": []})", R"({"siblings": 3})"})
    EXPECT_NE(error_of([&] { parse_listing(text, "hub"); }), "") << text;
  for (const char* etag : {"", "../x", ".hidden", "a/b", "a b", "x\ny"})
    EXPECT_FALSE(is_blob_name(etag)) << etag;
}

TEST_F(FetchTest, TwoAtOnceShareTheWork) {
  hub_.start("--slow 0.01");
  FetchResult other;
  std::thread second([&] {
    while (incomplete_size() < 1000)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    other = fetch(settings(), {.name = "Qwen/Tiny"}, {});
  });
  const FetchResult got = get_model();
  second.join();
  EXPECT_EQ(other.snapshot.folder, got.snapshot.folder);
  EXPECT_EQ(read_file(got.snapshot.folder / "model.safetensors"), LoopbackHub::weights());
  const std::string log = hub_.log();
  EXPECT_EQ(log.find("storage GET"), log.rfind("storage GET"));  // the large file came once
}

// A limit on the size of files stands for a full disk.
TEST_F(FetchTest, AFullDiskIsOneMessageAndCanGoOn) {
  hub_.start();
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{12000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = error({.name = "Qwen/Tiny"});
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(message, AllOf(HasSubstr("cannot be written"), HasSubstr(".incomplete")));
  EXPECT_FALSE(has_ref());
  const FetchResult got = get_model();
  EXPECT_EQ(read_file(got.snapshot.folder / "model.safetensors"), LoopbackHub::weights());
}

TEST_F(FetchTest, OfflineFetchesNothing) {
  FetchSettings offline = settings();
  offline.offline = true;
  EXPECT_THAT(error_of([&] { fetch(offline, {.name = "Qwen/Tiny"}, {}); }),
              HasSubstr("HF_HUB_OFFLINE"));
}

TEST(FetchSettingsTest, ComeFromTheUsualPlaces) {
  const testing::TemporaryFolder home;
  testing::Environment environment;
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT",
                           "HF_HUB_OFFLINE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    environment.set(name, std::nullopt);
  environment.set("HF_HOME", home.path().string());
  EXPECT_EQ(fetch_settings("x").token, "");
  EXPECT_EQ(fetch_settings("x").endpoint, "https://huggingface.co");
  write_file_atomically(home / "token", "  hf_file\n");
  EXPECT_EQ(fetch_settings("x").token, "hf_file");
  write_file_atomically(home / "other", "hf_path\r\n");
  environment.set("HF_TOKEN_PATH", (home / "other").string());
  EXPECT_EQ(fetch_settings("x").token, "hf_path");
  environment.set("HF_TOKEN", "hf_variable");
  EXPECT_EQ(fetch_settings("x").token, "hf_variable");
  environment.set("HF_TOKEN", "a\tb");
  EXPECT_THAT(error_of([] { fetch_settings("x"); }),
              AllOf(HasSubstr("HF_TOKEN"), Not(HasSubstr("a\tb"))));
  environment.set("HF_TOKEN", std::nullopt);
  environment.set("HF_ENDPOINT", "https://mirror.example/hub//");
  environment.set("HF_HUB_OFFLINE", "yes");
  EXPECT_EQ(fetch_settings("x").endpoint, "https://mirror.example/hub");
  EXPECT_TRUE(fetch_settings("x").offline);
  environment.set("HF_ENDPOINT", "ftp://x");
  EXPECT_THAT(error_of([] { fetch_settings("x"); }), HasSubstr("HF_ENDPOINT"));
}

TEST(HttpOrigin, IsSchemeHostAndPort) {
  EXPECT_EQ(origin_of("https://HuggingFace.co/a?b"), "https://huggingface.co:443");
  EXPECT_EQ(origin_of("https://huggingface.co@evil.example/"), "https://evil.example:443");
  EXPECT_NE(origin_of("http://huggingface.co"), origin_of("https://huggingface.co"));
  EXPECT_EQ(origin_of("file:///etc/passwd"), "");
}

}  // namespace
}  // namespace antisd::inline hub
