// `dashboard DIR`.
#include "report/dashboard.h"

#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/report_file.h"
#include "core/note.h"

namespace antisd::inline cli {
namespace {

int serve_until_interrupted(const DashboardOptions& options) {
  outlive_refused_writes();
  const std::atomic<bool>& interrupted = catch_interrupts();
  Dashboard dashboard(options);
  std::cout << dashboard.url() << std::endl;
  note(fmt::format("{} runs below {}; ^C ends", dashboard.runs(), options.folder.string()));
  std::thread server([&] { dashboard.serve(); });
  while (!interrupted)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  dashboard.stop();
  server.join();
  return kInterruptedStatus;
}

}  // namespace

std::function<int()> add_dashboard(CLI::App& app) {
  const auto options = std::make_shared<DashboardOptions>();
  options->compare = comparison_table;
  app.add_option("DIR", options->folder, "show all runs below this folder, including new ones")
      ->required();
  app.add_option("--port", options->port, "0 takes a free one")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
  app.add_option("--host", options->host,
                 "address to listen on; if it is not loopback, browsers need a token")
      ->capture_default_str();
  app.add_option(
      "--token", options->token,
      "the token that browsers must send; generated and printed if needed and not given");
  return [options] { return serve_until_interrupted(*options); };
}

}  // namespace antisd::inline cli
