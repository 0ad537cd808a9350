#include "run/checkpoint/checkpoint.h"

#include <cmath>
#include <fstream>
#include <functional>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dist/agreement.h"
#include "dist/in_process.h"
#include "io/atomic_file.h"
#include "io/safetensors.h"
#include "model/not_finite.h"
#include "run/checkpoint/manifest.h"
#include "run/checkpoint/testing.h"

namespace antisd::inline run {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::SmallRun;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

struct Case {
  const char* name;
  const char* model;
  at::ScalarType dtype;
};

class RoundTrip : public ::testing::TestWithParam<Case> {};

TEST_P(RoundTrip, TrainingGoesOnBitForBit) {
  const testing::TemporaryFolder folder;
  SmallRun straight(GetParam().model, GetParam().dtype);
  for (int step = 0; step < 3; ++step)
    straight.train_step();
  straight.save(folder.path());

  const NewestCheckpoint newest = find_newest_whole(folder.path());
  ASSERT_TRUE(newest.found);
  EXPECT_EQ(newest.found->step, 3);
  EXPECT_THAT(newest.skipped, IsEmpty());
  SmallRun resumed(GetParam().model, GetParam().dtype);
  const Json state = load_checkpoint(newest.found->path, resumed.model, resumed.optimizer);
  EXPECT_EQ(state, straight.state());
  EXPECT_EQ(state["gate"]["h_warm"].get<double>(), 0.1 + 0.2);
  EXPECT_EQ(resumed.bytes(), straight.bytes());
  straight.train_step();
  resumed.train_step();
  EXPECT_EQ(resumed.bytes(), straight.bytes());
}

INSTANTIATE_TEST_SUITE_P(Models, RoundTrip,
                         ::testing::Values(Case{"tied_fp32", "qwen3_gqa_tied", at::kFloat},
                                           Case{"experts_fp32", "qwen3_moe_mixed", at::kFloat},
                                           Case{"experts_bf16", "qwen3_moe_mixed", at::kBFloat16},
                                           Case{"untied_bf16", "olmo3_mha_bf16", at::kBFloat16}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Checkpoint, AFolderThatCannotBeReadIsNotAnEmptyOne) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(find_newest_whole(folder.path() / "missing").found);
  std::ofstream(folder.path() / "checkpoints") << "a file in its place";
  EXPECT_THAT(testing::error_of([&] { find_newest_whole(folder.path() / "checkpoints"); }),
              ::testing::HasSubstr("checkpoints"));
}

// A run is resumed in another precision without losing a bit of its weights.
TEST(Checkpoint, GoesOnInTheOtherPrecision) {
  for (const bool from_small : {true, false}) {
    const testing::TemporaryFolder folder;
    const at::ScalarType from = from_small ? at::kBFloat16 : at::kFloat;
    SmallRun saved("qwen3_gqa_tied", from);
    SmallRun loaded("qwen3_gqa_tied", from_small ? at::kFloat : at::kBFloat16);
    saved.train_step();
    load_checkpoint(saved.save(folder.path()), loaded.model, loaded.optimizer);
    const SmallRun& small = from_small ? saved : loaded;
    const SmallRun& full = from_small ? loaded : saved;
    for (const Parameter& wide : full.model.parameters()) {
      const Parameter& narrow = small.model.parameters().at(wide.name());
      EXPECT_TRUE(narrow.master.equal(wide.value));
      EXPECT_TRUE(narrow.value.equal(narrow.master.to(at::kBFloat16)));
      EXPECT_TRUE(narrow.first_moment.equal(wide.first_moment));
    }
  }
}

// Masters and moments on the host give the same files, and each goes on from any other's.
TEST(Checkpoint, IsTheSameWhereverTheStateLies) {
  const auto run_with = [](Offload offload) {
    return SmallRun("qwen3_moe_mixed", at::kBFloat16, one_rank(),
                    {.offload = offload, .streamed_elements = kUpdateBlock});
  };
  const testing::TemporaryFolder folder;
  std::vector<fs::path> saved;
  std::vector<std::string> after;  // one more step
  for (const Offload offload : kOffloads) {
    SmallRun run = run_with(offload);
    run.train_step();
    run.train_step();
    saved.push_back(run.save(folder / offload_name(offload)));
    for (const char* file : {"optimizer.safetensors", "model/model.safetensors"})
      EXPECT_TRUE(read_file(saved.back() / file) == read_file(saved.front() / file)) << file;
    run.train_step();
    after.push_back(run.bytes());
    EXPECT_EQ(after.back(), after.front()) << offload_name(offload);
  }
  for (const fs::path& checkpoint : saved) {
    for (const Offload offload : kOffloads) {
      SmallRun resumed = run_with(offload);
      load_checkpoint(checkpoint, resumed.model, resumed.optimizer);
      resumed.train_step();
      EXPECT_EQ(resumed.bytes(), after.front()) << checkpoint << " in " << offload_name(offload);
    }
  }
}

// A checkpoint has the weight of a frozen parameter but no optimizer state.
TEST(Checkpoint, AFrozenParameterIsSavedAsItsWeight) {
  const fs::path origin = testing::fixture("model/qwen3_gqa_tied");
  const auto processes = alone();
  const auto frozen_model = [&] {
    CausalLm model = load_model(origin, at::kCPU, at::kBFloat16);
    model.parameters().at("layers.0.qkv").spec.trainable = false;
    return model;
  };
  CausalLm saved = frozen_model(), loaded = frozen_model();
  AdamW optimizer(saved, {}, *processes), other(loaded, {}, *processes);
  for (Parameter& parameter : saved.parameters())
    parameter.value.mutable_grad() = at::ones_like(parameter.value);
  optimizer.step(1e-2);
  {
    const at::NoGradGuard no_grad;
    loaded.parameters().at("layers.0.qkv").value.zero_();
  }
  const testing::TemporaryFolder folder;
  const fs::path path = save_checkpoint(folder.path(), 1, {saved, optimizer, origin}, {});
  const SafetensorsFile file(path / "optimizer.safetensors");
  const std::string name = "model.layers.0.self_attn.q_proj.weight";
  for (const char* kind : {"exp_avg.", "exp_avg_sq.", "master."}) {
    EXPECT_EQ(file.find(kind + name), nullptr);
    EXPECT_NE(file.find(kind + std::string("model.layers.1.self_attn.q_proj.weight")), nullptr);
  }
  load_checkpoint(path, loaded, other);
  EXPECT_EQ(other.steps(), 1);
  for (const Parameter& parameter : saved.parameters()) {
    const Parameter& again = loaded.parameters().at(parameter.name());
    EXPECT_TRUE(again.value.equal(parameter.value)) << parameter.name();
    ASSERT_EQ(again.master.defined(), parameter.name() != "layers.0.qkv");
    if (again.master.defined()) {
      EXPECT_TRUE(again.master.equal(parameter.master)) << parameter.name();
    }
  }
}

TEST(Checkpoint, HoldsWhatItSays) {
  const testing::TemporaryFolder folder;
  SmallRun run("qwen3_gqa_tied");
  for (int step = 0; step < 10; ++step)
    run.train_step();
  const fs::path path = run.save(folder / "checkpoints");
  EXPECT_EQ(path, folder / "checkpoints" / "step-000010");
  EXPECT_THAT(names_in(folder / "checkpoints"), ElementsAre("step-000010"));
  EXPECT_THAT(names_in(path),
              ElementsAre("MANIFEST.json", "model", "optimizer.safetensors", "state.json"));
  // fp32 weights are their own masters and are not stored twice.
  const SafetensorsFile optimizer(path / "optimizer.safetensors");
  EXPECT_NE(optimizer.find("exp_avg.model.embed_tokens.weight"), nullptr);
  EXPECT_NE(optimizer.find("exp_avg_sq.model.embed_tokens.weight"), nullptr);
  EXPECT_EQ(optimizer.find("master.model.embed_tokens.weight"), nullptr);
  EXPECT_EQ(optimizer.metadata().at("adamw_steps"), "10");
  const Json manifest = parse_json(read_file(path / "MANIFEST.json"), "manifest");
  EXPECT_EQ(manifest["step"], 10);
  const auto& files = manifest["files"];
  ASSERT_THAT(files, SizeIs(4));
  EXPECT_EQ(files[0]["path"], "model/config.json");
  EXPECT_EQ(files[0]["bytes"], fs::file_size(path / "model/config.json"));
  const CausalLm model = load_model(path / "model", at::kCPU, at::kFloat);
  EXPECT_TRUE(
      model.parameters().at("embedding").value.equal(run.model.parameters().at("embedding").value));
}

// For each kind of damage, the older checkpoint is found, and the reason names the file.
TEST(Checkpoint, ADamagedOneIsSkippedWithItsReason) {
  struct Damage {
    const char* reason;
    std::function<void(const fs::path&)> inflict;
  };
  const auto flip = [](const fs::path& file, std::size_t at) {
    std::string bytes = read_file(file);
    bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
    std::ofstream(file, std::ios::binary) << bytes;
  };
  const auto cut = [](const fs::path& file) { fs::resize_file(file, fs::file_size(file) - 1); };
  const std::vector<Damage> damages = {
      {"optimizer.safetensors: its checksum",
       [&](const fs::path& p) { flip(p / "optimizer.safetensors", 5000); }},
      {"model.safetensors: its checksum",
       [&](const fs::path& p) { flip(p / "model/model.safetensors", 3000); }},
      {"state.json: its checksum", [&](const fs::path& p) { flip(p / "state.json", 4); }},
      {"optimizer.safetensors: ", [&](const fs::path& p) { cut(p / "optimizer.safetensors"); }},
      {"config.json: the file is missing",
       [](const fs::path& p) { fs::remove(p / "model/config.json"); }},
      {"state.json: the file is missing", [](const fs::path& p) { fs::remove(p / "state.json"); }},
      {"MANIFEST.json", [](const fs::path& p) { fs::remove(p / "MANIFEST.json"); }},
      {"MANIFEST.json", [](const fs::path& p) { fs::resize_file(p / "MANIFEST.json", 200); }},
      {"MANIFEST.json", [](const fs::path& p) { fs::resize_file(p / "MANIFEST.json", 0); }},
      {"it is of another step",
       [](const fs::path& p) { fs::rename(p, p.parent_path() / "step-000099"); }},
      {"MANIFEST.json",
       [](const fs::path& p) {
         fs::remove_all(p);
         std::ofstream(p) << "a file";
       }},
  };
  const testing::TemporaryFolder sound;
  SmallRun run("qwen3_gqa_tied");
  for (int step = 0; step < 2; ++step) {
    run.train_step();
    run.save(sound.path());
  }
  for (const Damage& damage : damages) {
    const testing::TemporaryFolder folder;
    fs::copy(sound.path(), folder.path(), fs::copy_options::recursive);
    damage.inflict(folder / "step-000002");
    const NewestCheckpoint newest = find_newest_whole(folder.path());
    ASSERT_TRUE(newest.found) << damage.reason;
    EXPECT_EQ(newest.found->step, 1);
    ASSERT_THAT(newest.skipped, SizeIs(1)) << damage.reason;
    EXPECT_THAT(newest.skipped[0].reason, HasSubstr(damage.reason));
  }
}

// Whatever a byte of the manifest is changed to, a returned checkpoint is complete.
TEST(Checkpoint, EveryFlippedByteOfAManifestIsHarmless) {
  const testing::TemporaryFolder folder;
  SmallRun run("qwen3_gqa_tied");
  run.train_step();
  const fs::path manifest = run.save(folder.path()) / kManifestName;
  const std::string whole = read_file(manifest);
  const std::string before = run.bytes();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ 0x15);
    std::ofstream(manifest, std::ios::binary) << bytes;
    const NewestCheckpoint newest = find_newest_whole(folder.path());
    if (!newest.found) continue;  // a change of white space may be harmless
    load_checkpoint(newest.found->path, run.model, run.optimizer);
    EXPECT_EQ(run.bytes(), before) << i;
  }
}

TEST(Checkpoint, AHostileManifestStaysInsideItsFolder) {
  const testing::TemporaryFolder folder;
  const fs::path path = folder / "step-000001";
  fs::create_directory(path);
  for (const char* bad : {R"("/etc/passwd")", R"("../secret")", R"("")", "7", "null"}) {
    write_file_atomically(path / kManifestName,
                          fmt::format(R"({{"format":1,"step":1,"files":[{{"path":{},"bytes":1,)"
                                      R"("xxh3":"00"}}]}})",
                                      bad));
    const NewestCheckpoint newest = find_newest_whole(folder.path());
    EXPECT_FALSE(newest.found);
    EXPECT_THAT(newest.skipped, SizeIs(1));
  }
  write_file_atomically(path / kManifestName, R"({"format":1,"step":1,"files":[]})");
  EXPECT_THAT(testing::error_of([&] { verify_checkpoint(path); }), HasSubstr("does not list"));
}

TEST(Checkpoint, NothingThereIsNoError) {
  const testing::TemporaryFolder folder;
  EXPECT_FALSE(find_newest_whole(folder / "none").found);
  EXPECT_THAT(prune_checkpoints(folder / "none", {}), IsEmpty());
  for (const char* other : {"step-10", "step-00001x", "step--00001", "notes", "step-"})
    fs::create_directory(folder / other);
  EXPECT_FALSE(find_newest_whole(folder.path()).found);
  EXPECT_THAT(testing::error_of([&] { verify_checkpoint(folder / "notes"); }),
              HasSubstr("step-NUMBER"));
}

TEST(Checkpoint, OfAnotherModelIsRefused) {
  const testing::TemporaryFolder folder;
  SmallRun saved("qwen3_gqa_tied"), other("llama_mha_tied");
  saved.train_step();
  const fs::path path = saved.save(folder.path());
  EXPECT_THAT(testing::error_of([&] { load_checkpoint(path, other.model, other.optimizer); }),
              AllOf(HasSubstr("step-000001"), HasSubstr("that the model does not have")));
}

TEST(Checkpoint, ANewOneOfTheSameStepReplacesTheOld) {
  const testing::TemporaryFolder folder;
  SmallRun run("qwen3_gqa_tied");
  run.train_step();
  const fs::path path = run.save(folder.path());
  fs::resize_file(path / "optimizer.safetensors", 10);
  EXPECT_FALSE(find_newest_whole(folder.path()).found);
  run.save(folder.path());
  EXPECT_TRUE(find_newest_whole(folder.path()).found);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-000001"));
}

TEST(Checkpoint, OldOnesGoAndTheBestStays) {
  const testing::TemporaryFolder folder;
  SmallRun run("qwen3_gqa_tied");
  for (int step = 1; step <= 5; ++step) {
    run.train_step();
    run.save(folder.path());
  }
  fs::create_directories(folder / ".step-000004.12345678.tmp/model");
  fs::create_directory(folder / "mine");
  EXPECT_THAT(find_newest_whole(folder.path()).skipped, SizeIs(1));
  EXPECT_THAT(prune_checkpoints(folder.path(), {.keep = 2, .best_step = 2}),
              ElementsAre(folder / ".step-000004.12345678.tmp", folder / "step-000003",
                          folder / "step-000001"));
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("mine", "step-000002", "step-000004", "step-000005"));
  EXPECT_THAT(prune_checkpoints(folder.path(), {.keep = 2, .best_step = 2}), IsEmpty());
}

TEST(Checkpoint, TheGoodOneStaysAndDamagedLaterOnesDoNotCount) {
  const testing::TemporaryFolder folder;
  SmallRun run("qwen3_gqa_tied");
  for (int step = 1; step <= 5; ++step) {
    run.train_step();
    run.save(folder.path());
  }
  // 5 was damaged; the run resumed from 2 and has just saved 4.
  prune_checkpoints(folder.path(), {.keep = 1, .good_step = 2, .newest = 4});
  EXPECT_THAT(names_in(folder.path()), ElementsAre("step-000002", "step-000004", "step-000005"));
}

TEST(Checkpoint, NothingIsSavedOfNumbersThatAreNone) {
  const at::NoGradGuard no_grad;
  const auto refused = [](const std::function<void(SmallRun&)>& spoil, at::ScalarType dtype) {
    const testing::TemporaryFolder folder;
    SmallRun run("qwen3_gqa_tied", dtype);
    spoil(run);
    std::string message;
    try {
      run.save(folder / "checkpoints");
    } catch (const NotFinite& error) {
      message = error.message();
    }
    EXPECT_FALSE(fs::exists(folder / "checkpoints"));
    return message;
  };
  const auto spoil = [](const at::Tensor& tensor, float value) {
    tensor.flatten().slice(0, tensor.numel() - 1).fill_(value);
  };
  const auto refused_at = [&](at::Tensor Parameter::*member, float value, at::ScalarType dtype) {
    return refused(
        [&](SmallRun& r) { spoil(r.model.parameters().at("layers.0.qkv").*member, value); }, dtype);
  };
  EXPECT_THAT(refused_at(&Parameter::value, NAN, at::kFloat), HasSubstr("the weight of"));
  EXPECT_THAT(refused_at(&Parameter::first_moment, INFINITY, at::kFloat),
              HasSubstr("the first moment of"));
  EXPECT_THAT(refused_at(&Parameter::second_moment, NAN, at::kFloat),
              HasSubstr("the second moment of"));
  EXPECT_THAT(refused_at(&Parameter::master, -INFINITY, at::kBFloat16),
              HasSubstr("the master weight of"));
}

// A state of more than shard_bytes: several files, written by several ranks, the same ones however
// many there are.
TEST(Checkpoint, ALargeStateIsCutIntoFilesWithAnIndex) {
  const testing::TemporaryFolder folder;
  std::string expected;
  std::map<std::string, std::string> files;
  for (const int size : {1, 3}) {
    const fs::path checkpoints = folder / std::to_string(size);
    run_ranks(size, [&](Communicator& ranks) {
      SmallRun run("qwen3_moe_mixed", at::kBFloat16, ranks, {.members = size});
      run.train_step(ranks);
      CheckpointParts parts{.model = run.model,
                            .optimizer = run.optimizer,
                            .origin = run.origin,
                            .ranks = &ranks,
                            .shard_bytes = 20'000};
      lead(
          ranks,
          [&](const std::function<void()>& call) {
            parts.call_ranks = call;
            save_checkpoint(checkpoints, 1, parts, run.state());
          },
          [&] { help_save_checkpoint(parts); });
      if (size == 1) expected = run.bytes();
    });
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(checkpoints / "step-000001"))
      if (entry.is_regular_file())
        found[entry.path().lexically_relative(checkpoints).string()] = read_file(entry.path());
    if (size == 1) files = found;
    EXPECT_TRUE(found == files);
  }
  EXPECT_TRUE(files.contains("step-000001/optimizer.safetensors.index.json"));
  EXPECT_FALSE(files.contains("step-000001/optimizer.safetensors"));
  verify_checkpoint(folder / "3/step-000001");
  SmallRun again("qwen3_moe_mixed", at::kBFloat16);
  load_checkpoint(folder / "3/step-000001", again.model, again.optimizer);
  EXPECT_TRUE(again.bytes() == expected);
  for (const auto& [name, bytes] : files)
    if (name.starts_with("step-000001/optimizer-00002-of-")) fs::remove(folder / "3" / name);
  EXPECT_THAT(testing::error_of([&] { verify_checkpoint(folder / "3/step-000001"); }),
              HasSubstr("optimizer-00002-of-"));
}

}  // namespace
}  // namespace antisd::inline run
