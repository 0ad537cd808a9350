// The report's page over HTTP, live, for all runs below a folder.
//
//   Dashboard dashboard({.folder = "runs"});
//   std::cout << dashboard.url();
//   dashboard.serve();  // until stop(), from any thread
//
// It only reads. There are three routes: / (the page), /api/update?since=VERSION&server=ID
// (changes: run_set.h) and /api/samples?run=ID&step=N. None takes a path, and nothing outside the
// folder is opened, whatever links it contains. On a loopback address a request must name a
// loopback host, so that no other site can reach it under its own name; on any other address it
// must have the token, first as ?token= and then as a cookie, or as "Authorization: Bearer".
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "report/run_set.h"

namespace antisd::inline report {

struct DashboardOptions {
  std::filesystem::path folder;
  std::string host = "127.0.0.1";
  int port = 8484;            // 0: a free one
  std::string token = {};     // generated if the host is not a loopback address
  double look_seconds = 1.0;  // between looks at the files
  RunSet::Compare compare = {};
};

class Dashboard {
 public:
  // Reads the runs and binds. InputError if the folder does not exist, RunError if the port is
  // unavailable.
  explicit Dashboard(DashboardOptions options);
  ~Dashboard();

  int port() const;
  std::string url() const;  // with the token, if one is needed
  std::size_t runs() const;

  void serve();
  void stop();

 private:
  class Server;
  std::unique_ptr<Server> server_;
};

}  // namespace antisd::inline report
