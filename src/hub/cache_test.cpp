#include "hub/cache.h"

#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "hub/testing.h"
#include "io/json.h"

namespace antisd::inline hub {
namespace {

namespace fs = std::filesystem;
using testing::error_of;
using ::testing::HasSubstr;
using testing::HubCache;

const std::string kRepo = "models--Qwen--Qwen3-0.6B";
const std::string kOld = "1111222233334444555566667777888899990000";
const std::string kNew = "1111aaaabbbbccccddddeeeeffff000011112222";

// Two revisions: main is the new one, v1 and a pull request the old one.
void fill(HubCache& cache) {
  cache.add_file(kRepo, kOld, "config.json", "{}");
  cache.add_file(kRepo, kNew, "config.json", "{ }");
  cache.add_ref(kRepo, "main", kNew);
  cache.add_ref(kRepo, "v1", kOld);
  cache.add_ref(kRepo, "refs/pr/3", kOld);
}

RepoName model(const std::string& text) {
  return parse_repo_name(RepoType::kModel, text).value();
}

TEST(RepoName, IsANameAndARevision) {
  EXPECT_EQ(model("Qwen/Qwen3-0.6B").name, "Qwen/Qwen3-0.6B");
  EXPECT_EQ(model("Qwen/Qwen3-0.6B").revision, "");
  EXPECT_EQ(model("openai/gsm8k@refs/convert/parquet").revision, "refs/convert/parquet");
  EXPECT_EQ(cache_name(model("gpt2")), "models--gpt2");
  EXPECT_EQ(cache_name(*parse_repo_name(RepoType::kDataset, "openai/gsm8k")),
            "datasets--openai--gsm8k");
}

TEST(RepoName, NeverLeadsOutOfTheCache) {
  for (const char* text :
       {"",           "/",     "../x",    "a/..",     "..",     "a/b/c",       "/etc/passwd",
        "./a",        "a/.b",  "a--b/c",  "a/b ",     "a/b@",   "a/b@../../x", "a/b@/etc/passwd",
        "a/b@x/../y", "a/b@.", "a/b@x:y", "a/b@x\ny", "a\\b/c", "-a/b",        "a/b@x//y"}) {
    EXPECT_EQ(parse_repo_name(RepoType::kModel, text), std::nullopt) << text;
  }
}

TEST(HubCacheTest, FindsRevisionsAsHuggingfaceHubDoes) {
  ANTISD_NEEDS_REFERENCE();
  HubCache cache;
  fill(cache);
  // huggingface_hub does not know abbreviated hashes when it is offline.
  for (const std::string revision : {"", "main", "v1", "refs/pr/3", kOld.c_str(), kNew.c_str()}) {
    const std::string script = fmt::format(
        "import huggingface_hub as h; print(h.snapshot_download('Qwen/Qwen3-0.6B', revision={}, "
        "local_files_only=True), end='')",
        revision.empty() ? "None" : "'" + revision + "'");
    const fs::path out = cache.path() / "out";
    ASSERT_EQ(std::system(fmt::format("'{}' -c \"{}\" > '{}'", testing::reference_python().string(),
                                      script, out.string())
                              .c_str()),
              0);
    const auto found =
        find_snapshot(model("Qwen/Qwen3-0.6B" + (revision.empty() ? "" : "@" + revision)));
    ASSERT_TRUE(found) << revision;
    EXPECT_EQ(found->folder.string(), read_file(out)) << revision;
  }
}

TEST(HubCacheTest, FindsAbbreviatedCommits) {
  HubCache cache;
  fill(cache);
  EXPECT_EQ(find_snapshot(model("Qwen/Qwen3-0.6B@1111a"))->repo.revision, kNew);
  EXPECT_EQ(find_snapshot(model("Qwen/Qwen3-0.6B@11112"))->repo.revision, kOld);
  EXPECT_EQ(find_snapshot(model("Qwen/Qwen3-0.6B@1111b")), std::nullopt);
  EXPECT_THAT(error_of([] { find_snapshot(model("Qwen/Qwen3-0.6B@1111")); }),
              AllOf(HasSubstr(kOld), HasSubstr(kNew)));
}

TEST(HubCacheTest, IsWhereHuggingfaceHubLooks) {
  ANTISD_NEEDS_REFERENCE();
  const std::vector<std::map<std::string, std::string>> cases = {
      {},
      {{"HF_HOME", "/a/home"}},
      {{"XDG_CACHE_HOME", "/x"}},
      {{"HF_HOME", "~/h"}, {"XDG_CACHE_HOME", "/x"}},
      {{"HUGGINGFACE_HUB_CACHE", "/old"}, {"HF_HOME", "/a/home"}},
      {{"HF_HUB_CACHE", "~/new"}, {"HUGGINGFACE_HUB_CACHE", "/old"}}};
  testing::Environment environment;
  std::string script =
      "import importlib, os\nimport huggingface_hub.constants as c\n"
      "def show(**k):\n"
      "  for n in ('HF_HUB_CACHE', 'HUGGINGFACE_HUB_CACHE', 'HF_HOME', 'XDG_CACHE_HOME'):\n"
      "    os.environ.pop(n, None)\n"
      "  os.environ.update(k, HOME='/u')\n"
      "  importlib.reload(c)\n"
      "  print(c.HF_HUB_CACHE)\n";
  std::string ours;
  for (const auto& variables : cases) {
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"})
      environment.set(name, std::nullopt);
    environment.set("HOME", "/u");
    script += "show(";
    for (const auto& [name, value] : variables) {
      environment.set(name, value);
      script += fmt::format("{}='{}', ", name, value);
    }
    script += ")\n";
    ours += cache_folder().string() + "\n";
  }
  const testing::TemporaryFolder folder;
  write_file_atomically(folder / "show.py", script);
  ASSERT_EQ(std::system(fmt::format("'{}' '{}' > '{}'", testing::reference_python().string(),
                                    (folder / "show.py").string(), (folder / "out").string())
                            .c_str()),
            0);
  EXPECT_EQ(ours, read_file(folder / "out"));
}

TEST(HubCacheTest, AModelIsAPathFirst) {
  HubCache cache;
  fill(cache);
  const testing::TemporaryFolder here;
  const fs::path before = fs::current_path();
  fs::current_path(here.path());
  EXPECT_EQ(model_folder("Qwen/Qwen3-0.6B"), cache.snapshot(kRepo, kNew));
  EXPECT_EQ(pinned_model("Qwen/Qwen3-0.6B@v1"), "Qwen/Qwen3-0.6B@" + kOld);
  fs::create_directories("Qwen/Qwen3-0.6B");
  EXPECT_EQ(model_folder("Qwen/Qwen3-0.6B"), "Qwen/Qwen3-0.6B");
  EXPECT_EQ(pinned_model("Qwen/Qwen3-0.6B"), "Qwen/Qwen3-0.6B");
  fs::current_path(before);
}

TEST(HubCacheTest, SaysWhereItLookedAndHowToGetIt) {
  HubCache cache;
  fill(cache);
  EXPECT_THAT(
      error_of([] { model_folder("Qwen/Qwen3-4B"); }),
      AllOf(HasSubstr("no such folder"),
            HasSubstr((cache.path() / "models--Qwen--Qwen3-4B").string()),
            HasSubstr("`antisd fetch Qwen/Qwen3-4B`"), HasSubstr("`hf download Qwen/Qwen3-4B`")));
  EXPECT_THAT(error_of([] { model_folder("Qwen/Qwen3-0.6B@v2"); }),
              AllOf(HasSubstr("no revision 'v2'"), HasSubstr(kOld),
                    HasSubstr("`hf download Qwen/Qwen3-0.6B --revision v2`")));
  EXPECT_EQ(model_folder("nowhere"), "nowhere");  // a folder, which the reader will miss
  EXPECT_EQ(model_folder("./a/folder"), "./a/folder");
}

TEST(HubCacheTest, ADamagedRefIsNoRevision) {
  HubCache cache;
  fill(cache);
  cache.add_ref(kRepo, "main", "../../../../etc");
  EXPECT_EQ(find_snapshot(model("Qwen/Qwen3-0.6B")), std::nullopt);
  cache.add_ref(kRepo, "main", std::string(40, '0'));  // no such snapshot
  EXPECT_EQ(find_snapshot(model("Qwen/Qwen3-0.6B")), std::nullopt);
}

TEST(HubCacheTest, ASnapshotKnowsItsName) {
  const auto found = snapshot_of("/c/models--Qwen--Qwen3-0.6B/snapshots/" + kOld + "/");
  ASSERT_TRUE(found);
  EXPECT_EQ(text_of(found->repo), "Qwen/Qwen3-0.6B@" + kOld);
  EXPECT_EQ(snapshot_of("/c/models--Qwen--Qwen3-0.6B/snapshots/main"), std::nullopt);
  EXPECT_EQ(snapshot_of("/c/Qwen/" + kOld), std::nullopt);
}

}  // namespace
}  // namespace antisd::inline hub
