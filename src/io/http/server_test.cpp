#include "io/http/server.h"

#include <atomic>
#include <future>
#include <list>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "core/testing.h"
#include "io/http/testing.h"

namespace antisd::inline io {
namespace {

using testing::Answer;
using testing::ask;
using testing::HttpClient;
using testing::request_text;
using Serving = testing::ServingThread<HttpServer>;

const std::string kHello = request_text("GET", "/hello");

class HttpServerTest : public ::testing::Test {
 protected:
  void begin(HttpServerOptions options) {
    server_ = std::make_unique<HttpServer>(std::move(options));
    server_->route("GET", "/hello",
                   [](const HttpRequest&) { return HttpResponse{.body = "hello"}; });
    server_->route("POST", "/echo",
                   [](const HttpRequest& request) { return HttpResponse{.body = request.body}; });
    server_->route("GET", "/large", [](const HttpRequest&) {
      return HttpResponse{.body = std::string(kLarge, 'x')};
    });
    server_->route("GET", "/fails",
                   [](const HttpRequest&) -> HttpResponse { throw RunError("a secret"); });
    server_->route("GET", "/splits", [](const HttpRequest&) {
      return HttpResponse{.fields = {{"X", "a\r\nSet-Cookie: b"}}};
    });
  }
  void serve() { serving_ = std::make_unique<Serving>(*server_); }
  int port() const { return server_->port(); }
  // Waits, up to the test's time limit, until `count` connections are open.
  void wait_for_connections(std::size_t count) const {
    while (server_->statistics().connections != count)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  static constexpr std::size_t kLarge = 32 << 20;  // more than a socket's buffers hold
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Serving> serving_;
};

TEST_F(HttpServerTest, RoutesAndMethods) {
  begin({.fields = {{"X-Common", "1"}}});
  server_->guard([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.path != "/closed") return std::nullopt;
    return HttpResponse{.status = 403, .fields = {{"X-Common", "own"}}};
  });
  serve();
  const Answer answer = ask(port(), "GET", "/hello?x=1");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.field("X-Common"), "1");
  const Answer head = ask(port(), "HEAD", "/hello");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.field("Content-Length"), "5");
  EXPECT_EQ(ask(port(), "GET", "/Hello").status, 404);
  EXPECT_EQ(ask(port(), "GET", "/hello/").status, 404);
  EXPECT_EQ(ask(port(), "OPTIONS", "*").status, 404);
  const Answer wrong = ask(port(), "POST", "/hello");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.field("Allow"), "GET, HEAD");
  EXPECT_EQ(ask(port(), "HEAD", "/echo").field("Allow"), "POST");
  const Answer closed = ask(port(), "GET", "/closed");
  EXPECT_EQ(closed.status, 403);
  EXPECT_EQ(closed.field("X-Common"), "own");
  const Answer failed = ask(port(), "GET", "/fails");
  EXPECT_EQ(failed.status, 500);
  EXPECT_THAT(failed.body, ::testing::Not(::testing::HasSubstr("secret")));
  EXPECT_EQ(ask(port(), "GET", "/splits").status, 0) << "a header that is two is not sent";
  EXPECT_EQ(ask(port(), "GET", "/hello").status, 200);
}

TEST_F(HttpServerTest, RequestsOneAfterTheOtherAndAhead) {
  begin({});
  serve();
  HttpClient client(port());
  std::string ahead;
  for (int i = 0; i < 200; ++i)
    ahead += i % 2 == 0 ? kHello : request_text("POST", "/echo", {}, std::to_string(i));
  client.send(ahead);
  client.end_sending();  // earlier requests are still answered
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(client.receive().body, i % 2 == 0 ? "hello" : std::to_string(i));
  EXPECT_TRUE(client.is_closed_by_server());
  HttpClient last(port());
  last.send(request_text("GET", "/hello", {{"Connection", "close"}}) + kHello);
  EXPECT_EQ(last.receive().field("Connection"), "close");
  EXPECT_TRUE(last.is_closed_by_server());
  HttpClient old(port());
  old.send("GET /hello HTTP/1.0\r\n\r\n");
  EXPECT_EQ(old.receive().body, "hello");
  EXPECT_TRUE(old.is_closed_by_server());
}

TEST_F(HttpServerTest, BodiesAndWhatIsTooMuch) {
  begin({.limits = {.body_bytes = 100'000}});
  serve();
  HttpClient client(port());
  client.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send("abc");
  EXPECT_EQ(client.receive().body, "abc");
  client.send(
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive().body, "ab");
  EXPECT_EQ(ask(port(), "POST", "/echo", {}, std::string(100'000, 'y')).body.size(), 100'000u);
  // The client gets the reason before it is disconnected, although it keeps sending.
  EXPECT_EQ(ask(port(), "POST", "/echo", {}, std::string(100'001, 'y')).status, 413);
  EXPECT_EQ(ask(port(), "GET", "/" + std::string(20'000, 'x')).status, 414);
  EXPECT_EQ(ask(port(), "GET", "/", {{"X", std::string(20'000, 'x')}}).status, 431);
  HttpClient garbage(port());
  garbage.send("\x16\x03\x01\n");
  EXPECT_EQ(garbage.receive().status, 400);
  EXPECT_TRUE(garbage.is_closed_by_server());
}

// Slow connections that send a byte now and then, and silent ones, must not take every thread.
TEST_F(HttpServerTest, AnswersAmongDrippingAndIdleConnections) {
  begin({.header_seconds = 600, .idle_seconds = 600});  // none times out
  serve();
  std::list<HttpClient> dripping, idle;
  for (int i = 0; i < 64; ++i)
    dripping.emplace_back(port()).send("GET /hello HTTP/1.1\r\nHost: a\r\nX-Slow: ");
  for (int i = 0; i < 250; ++i)
    idle.emplace_back(port());
  wait_for_connections(64 + 250);
  for (int round = 0; round < 5; ++round) {
    for (HttpClient& client : dripping)
      client.send("x");
    EXPECT_EQ(ask(port(), "GET", "/hello").body, "hello");
  }
  EXPECT_EQ(server_->statistics().displaced, 0u);
}

TEST_F(HttpServerTest, AHeaderHasOneTimeHoweverItDrips) {
  begin({.header_seconds = 0.3});
  serve();
  HttpClient client(port());
  // Each byte is in time; all of them together are not. (A send after the end fails at some point.)
  std::atomic<bool> done = false;
  std::thread drips([&] {
    client.send("GET /hello HTTP/1.1\r\nX: ");
    while (!done && client.send("x"))
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
  });
  EXPECT_EQ(client.receive().status, 408);
  done = true;
  drips.join();
  HttpClient body(port());
  body.send(kHello);
  EXPECT_EQ(body.receive().status, 200) << "the time of one header does not count for the next";
}

TEST_F(HttpServerTest, ABodyAndAnIdleConnectionHaveTheirTimes) {
  begin({.body_seconds = 0.1});
  serve();
  HttpClient body(port());
  body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(body.receive().status, 408);
  serving_.reset();
  begin({.idle_seconds = 0.1});
  serve();
  HttpClient idle(port());
  EXPECT_TRUE(idle.is_closed_by_server());
}

TEST_F(HttpServerTest, WhenFullTheLongestIdleGoes) {
  begin({.connections = 20, .header_seconds = 600, .idle_seconds = 600});
  serve();
  std::list<HttpClient> clients;
  HttpClient& oldest = clients.emplace_back(port());
  oldest.send(kHello);
  EXPECT_EQ(oldest.receive().status, 200);
  HttpClient& dripping = clients.emplace_back(port());
  dripping.send("GET /hello HTTP/1.1\r\nX: ");
  for (int i = 2; i < 20; ++i)
    clients.emplace_back(port());
  wait_for_connections(20);
  oldest.send(kHello);  // now the second is the one that has been idle longest, drip or no drip
  EXPECT_EQ(oldest.receive().status, 200);
  dripping.send("x");
  EXPECT_EQ(server_->statistics().displaced, 0u);
  EXPECT_EQ(ask(port(), "GET", "/hello").status, 200);
  EXPECT_EQ(server_->statistics().displaced, 1u);
  EXPECT_TRUE(dripping.is_closed_by_server());
  oldest.send(kHello);
  EXPECT_EQ(oldest.receive().status, 200);
  // A thousand connections pass through a table of twenty; every request is answered.
  std::list<HttpClient> crowd;
  for (int i = 0; i < 500; ++i) {
    crowd.emplace_back(port());
    if (i % 50 == 0) {
      EXPECT_EQ(ask(port(), "GET", "/hello").status, 200);
    }
  }
}

TEST_F(HttpServerTest, ClientsThatNeverReadAreBounded) {
  constexpr std::size_t kMost = 5 * kLarge;
  begin({.connections = 50, .waiting_bytes = kMost});
  serve();
  std::list<HttpClient> deaf;
  for (int i = 0; i < 12; ++i)
    deaf.emplace_back(port(), true)
        .send(request_text("GET", "/large") + request_text("GET", "/large"));
  while (server_->statistics().displaced <
         12 - 6)  // five answers fit, or six with what the system holds of each
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  HttpClient reads(port());
  reads.send(request_text("GET", "/large"));
  EXPECT_EQ(reads.receive().body.size(), kLarge);
}

TEST_F(HttpServerTest, AClientThatStopsReadingIsGivenUp) {
  begin({.stall_seconds = 0.2});
  serve();
  HttpClient deaf(port(), true);
  deaf.send(kHello);
  EXPECT_EQ(deaf.receive().status, 200);
  deaf.send(request_text("GET", "/large"));
  wait_for_connections(0);
  EXPECT_EQ(ask(port(), "GET", "/hello").status, 200);
}

TEST_F(HttpServerTest, StreamsFromAnotherThread) {
  begin({.stream_bytes = 100'000});
  std::promise<HttpStream> promised;
  std::promise<HttpStream> deaf_promised;
  server_->route("POST", "/stream", [&](const HttpRequest& request) {
    std::promise<HttpStream>& to = request.body == "deaf" ? deaf_promised : promised;
    return HttpResponse{.type = "text/event-stream",
                        .stream = [&to](HttpStream s) { to.set_value(s); }};
  });
  server_->route("GET", "/lost", [](const HttpRequest&) {
    return HttpResponse{.stream = [](HttpStream stream) { stream.write("a part"); }};
  });
  serve();
  HttpClient client(port());
  client.send(request_text("POST", "/stream", {}, "live") + kHello);
  {
    const HttpStream stream = promised.get_future().get();
    EXPECT_TRUE(stream.write("data: one\ndata: two\n\n"));
    EXPECT_THAT(client.read_until("two\n\n"),
                ::testing::AllOf(::testing::StartsWith("HTTP/1.1 200"),
                                 ::testing::HasSubstr("data: one\n")));
    EXPECT_TRUE(stream.write("data: three\n\n"));
    EXPECT_THAT(client.read_until("three\n\n"), ::testing::HasSubstr("data: three"));
    stream.finish();
    EXPECT_FALSE(stream.write("late"));
  }
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "\r\n0\r\n\r\n");
  EXPECT_EQ(client.receive().body, "hello") << "the connection goes on with the next request";

  HttpClient deaf(port(), true);
  deaf.send(request_text("POST", "/stream", {}, "deaf"));
  const HttpStream stream = deaf_promised.get_future().get();
  const std::string chunk(10'000, 'x');
  int written = 0;
  while (
      stream.write(chunk))  // ends: what the system and the server hold for one client is bounded
    ++written;
  EXPECT_GT(written, 0);

  HttpClient lost(port());
  lost.send(request_text("GET", "/lost"));
  EXPECT_THAT(lost.read_until("a part"), ::testing::HasSubstr("a part"));
  lost.read_until("\r\n");
  EXPECT_TRUE(lost.is_closed_by_server()) << "no last chunk: a part is not taken for the whole";
}

// A long computation answers as a whole, from another thread, and learns that its client left.
TEST_F(HttpServerTest, AnswersLaterFromAnotherThread) {
  begin({});
  std::promise<HttpStream> first, second, third;
  server_->route("POST", "/later", [&](const HttpRequest& request) {
    std::promise<HttpStream>& to = request.body == "1"   ? first
                                   : request.body == "2" ? second
                                                         : third;
    return HttpResponse{.type = "text/event-stream",
                        .stream = [&to](HttpStream s) { to.set_value(s); },
                        .head_waits = true};
  });
  serve();
  HttpClient client(port());
  client.send(request_text("POST", "/later", {}, "1") + kHello);
  {
    const HttpStream stream = first.get_future().get();
    EXPECT_FALSE(stream.is_gone());
    stream.answer({.status = 503, .type = "application/json", .body = "{}"});
    EXPECT_FALSE(stream.write("late"));
  }
  const Answer answer = client.receive();
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.field("Content-Length"), "2");
  EXPECT_EQ(answer.field("Content-Type"), "application/json");
  EXPECT_EQ(answer.body, "{}");
  EXPECT_EQ(client.receive().body, "hello") << "the connection goes on with the next request";

  client.send(request_text("POST", "/later", {}, "2"));
  {
    const HttpStream stream = second.get_future().get();
    EXPECT_TRUE(stream.write("one "));
    EXPECT_TRUE(stream.write("two"));
    stream.finish();
  }
  const Answer streamed = client.receive();
  EXPECT_EQ(streamed.field("Content-Type"), "text/event-stream");
  EXPECT_EQ(streamed.body, "one two");

  auto leaving = std::make_unique<HttpClient>(port());
  leaving->send(request_text("POST", "/later", {}, "3"));
  const HttpStream stream = third.get_future().get();
  leaving.reset();
  wait_for_connections(1);
  EXPECT_TRUE(stream.is_gone());
  stream.answer({});
}

TEST_F(HttpServerTest, TheGuardLooksBeforeTheBody) {
  begin({.refusal = [](int status, const std::string& problem) {
    return HttpResponse{.status = status, .body = "no: " + problem};
  }});
  server_->guard([](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.field("x") == "known") return std::nullopt;
    return HttpResponse{.status = 401, .body = "who are you?"};
  });
  server_->route("GET", "/below/*",
                 [](const HttpRequest& request) { return HttpResponse{.body = request.path}; });
  serve();
  HttpClient stranger(port());
  stranger.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
  EXPECT_EQ(stranger.receive().status, 401) << "its body is not waited for";
  EXPECT_TRUE(stranger.is_closed_by_server());
  const HttpFields known = {{"X", "known"}};
  EXPECT_EQ(ask(port(), "POST", "/echo", known, "abc").body, "abc");
  EXPECT_EQ(ask(port(), "GET", "/below/a/b", known).body, "/below/a/b");
  EXPECT_EQ(ask(port(), "GET", "/below/", known).status, 404);
  EXPECT_EQ(ask(port(), "GET", "/nothing", known).body, "no: there is nothing here");
  HttpClient garbage(port());
  garbage.send("\x16\x03\x01\n");
  EXPECT_THAT(garbage.receive().body, ::testing::StartsWith("no: "));
}

TEST_F(HttpServerTest, AStreamThatIsWholeGoesOutAtTheStop) {
  begin({});
  std::promise<HttpStream> promised;
  server_->route("GET", "/stream", [&](const HttpRequest&) {
    return HttpResponse{.stream = [&](HttpStream stream) { promised.set_value(stream); }};
  });
  serve();
  HttpClient client(port());
  client.send(request_text("GET", "/stream"));
  const HttpStream stream = promised.get_future().get();
  stream.write(std::string(100'000, 'x'));
  stream.finish();
  server_->stop();
  EXPECT_EQ(client.receive().body.size(), 100'000u);
}

TEST_F(HttpServerTest, AStreamOutlivesItsServer) {
  begin({});
  std::promise<HttpStream> promised;
  server_->route("GET", "/stream", [&](const HttpRequest&) {
    return HttpResponse{.stream = [&](HttpStream stream) { promised.set_value(stream); }};
  });
  serve();
  HttpClient client(port());
  client.send(request_text("GET", "/stream"));
  const HttpStream stream = promised.get_future().get();
  serving_.reset();
  server_.reset();
  EXPECT_FALSE(stream.write("x"));
  stream.finish();
}

TEST_F(HttpServerTest, AClientThatLeavesEndsItsStream) {
  begin({});
  std::promise<HttpStream> promised;
  server_->route("GET", "/stream", [&](const HttpRequest&) {
    return HttpResponse{.stream = [&](HttpStream stream) { promised.set_value(stream); }};
  });
  serve();
  auto client = std::make_unique<HttpClient>(port());
  client->send(request_text("GET", "/stream"));
  const HttpStream stream = promised.get_future().get();
  EXPECT_TRUE(stream.write("x"));
  client.reset();
  wait_for_connections(0);
  EXPECT_FALSE(stream.write("x"));
}

TEST_F(HttpServerTest, StopLetsAnAnswerGoOut) {
  begin({.stop_seconds = 600});
  std::promise<void> asked, go;
  server_->route("GET", "/slow", [&](const HttpRequest&) {
    asked.set_value();
    go.get_future().wait();
    return HttpResponse{.body = "done"};
  });
  serve();
  HttpClient idle(port()), client(port());
  client.send(request_text("GET", "/slow"));
  asked.get_future().wait();
  server_->stop();
  EXPECT_TRUE(idle.is_closed_by_server());
  go.set_value();
  EXPECT_EQ(client.receive().body, "done");
}

TEST_F(HttpServerTest, FewFilesAllowed) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "ubsan looks at an object through a pipe, and there is none to be had";
#endif
  const auto serve_with_few = [this] {
    const rlimit limit = {130, 130};
    setrlimit(RLIMIT_NOFILE, &limit);
    begin({});
    const bool fewer = server_->statistics().most == 30;
    serve();
    std::list<HttpClient> clients;  // use up the descriptors of this process
    try {
      while (true)
        clients.emplace_back(port());
    } catch (const RunError&) {
    }
    clients.clear();
    const bool answers = ask(port(), "GET", "/hello").status == 200;
    std::_Exit(fewer && answers ? 0 : 1);
  };
  // The limit applies to a process, so this runs in a child process.
  EXPECT_EXIT(serve_with_few(), ::testing::ExitedWithCode(0), "");
}

TEST(HttpServer, APortThatIsTaken) {
  const HttpServer first({});
  EXPECT_THAT(testing::error_of([&] { HttpServer({.port = first.port()}); }),
              ::testing::HasSubstr("the port is taken"));
  EXPECT_THAT(testing::error_of([&] { HttpServer({.host = "203.0.113.7"}); }),
              ::testing::HasSubstr("not this machine's"));
}

}  // namespace
}  // namespace antisd::inline io
