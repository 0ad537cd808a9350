#include "cli/weights/rank_session.h"

#include <iostream>
#include <map>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/build_info.h"
#include "core/core_share.h"
#include "core/error.h"
#include "dist/group/process_group.h"
#include "ops/tensor_errors.h"

namespace antisd::inline cli {
namespace {

// Without destructors: threads of the group may still wait for a rank that will not come.
[[noreturn]] void end_process(int status) {
  std::cout.flush();
  std::cerr.flush();
  _exit(status);
}

void tell(const std::string& message) {
  std::cout.flush();
  std::cerr << "antisd: " << message << std::endl;
}

// Rank 0 tells of lost ranks; the others do so if it is rank 0 itself that is lost, or the store.
bool is_told_by(int rank, const RunError& loss) {
  const std::string& text = loss.problem();
  return rank == 0 || text.starts_with("rank 0 ") || !text.starts_with("rank ");
}

[[noreturn]] void end_after_loss(int rank, const RunError& loss) {
  if (is_told_by(rank, loss)) tell(loss.message());
  end_process(loss.exit_status());
}

GpuBackend backend_of(const std::string& name) {
  static const std::map<std::string, GpuBackend> known = {
      {"auto", GpuBackend::kAuto}, {"gloo", GpuBackend::kGloo}, {"nccl", GpuBackend::kNccl}};
  return known.at(name);
}

// An error of this rank. Where all ranks have it, each tells the others in vain; where only this
// one has it, they throw it as the loss of this rank.
[[noreturn]] void end_after_error(ProcessGroup& group, const std::string& message, int status,
                                  bool tells) {
  group.fail(message);
  if (tells) tell(message);
  end_process(status);
}

int work_as_rank(ProcessGroup& group, const std::function<int(Communicator& ranks)>& work) {
  const bool first = group.rank() == 0;
  try {
    int status = 1;
    with_tensor_errors([&] { status = work(group); });
    group.leave();
    return status;
  } catch (const RankLost& loss) {
    end_after_loss(group.rank(), loss);
  } catch (const Error& error) {
    end_after_error(group, error.message(), error.exit_status(), first);
  } catch (const std::exception& error) {
    end_after_error(group, fmt::format("internal error, please report it: {}", error.what()), 1,
                    true);
  }
}

}  // namespace

Place this_place() {
  const Place place = find_place(process_environment());
  if (place.local_size > 1) share_cores(place.local_size, place.node_cores);
  hide_place();
  return place;
}

ConsoleOptions console_options(const Place& place, bool quiet) {
  ConsoleOptions options{.quiet = quiet};
  if (place.rank > 0) options.descriptor = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  return options;
}

std::string identity_of(const std::string& command, const RunConfig& config) {
  return fmt::format("revision {}\ncommand {}\n{}", kBuildInfo.revision, command,
                     config.options().to_toml(false));
}

int run_on_ranks(const Place& place, const RankOptions& options,
                 const std::function<int(Communicator& ranks)>& work) {
  if (place.size == 1) return work(*alone());
  const std::unique_ptr<ProcessGroup> group = join_group(
      place, {.backend = backend_of(options.dist.backend),
              .identity = options.identity,
              .silence_s = options.dist.silence_s,
              .on_loss = [&](const RunError& loss) { end_after_loss(place.rank, loss); }});
  return work_as_rank(*group, work);
}

}  // namespace antisd::inline cli
