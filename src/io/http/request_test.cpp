#include "io/http/request.h"

#include <gtest/gtest.h>

namespace antisd::inline io {
namespace {

using State = HttpRequestParser::State;

HttpRequestParser parsed(std::string_view bytes, HttpLimits limits = {}) {
  HttpRequestParser parser(limits);
  parser.take(bytes);
  return parser;
}

int status_of(std::string_view bytes, HttpLimits limits = {}) {
  const HttpRequestParser parser = parsed(bytes, limits);
  return parser.state() == State::kRefused ? parser.status() : 0;
}

std::string with_fields(std::string_view fields) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}

TEST(HttpRequest, PartsOfARequest) {
  const std::string text =
      "GET /a%20b/c?x=1&name=a+b%26c&empty&x=2 HTTP/1.1\r\nHost: localhost:8484\r\nX-Odd:\t two "
      "words \r\n\r\n";
  HttpRequestParser parser({});
  EXPECT_EQ(parser.take(text + "GET /next"), text.size());
  ASSERT_EQ(parser.state(), State::kDone);
  const HttpRequest& request = parser.request();
  EXPECT_EQ(request.method, "GET");
  EXPECT_EQ(request.path, "/a b/c");
  EXPECT_EQ(request.host, "localhost:8484");
  EXPECT_EQ(request.field("x-odd"), "two words");
  EXPECT_EQ(request.field("absent"), "");
  EXPECT_EQ(request.parameter("x"), "1");
  EXPECT_EQ(request.parameter("name"), "a b&c");
  EXPECT_EQ(request.parameter("empty"), "");
  EXPECT_FALSE(request.parameter("nam"));
  EXPECT_TRUE(request.keep_alive);
}

TEST(HttpRequest, ComesByteByByte) {
  const std::string text = with_fields("Transfer-Encoding: chunked\r\n") +
                           "3\r\nabc\r\n0A;name=value\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
  HttpRequestParser parser({});
  for (std::size_t i = 0; i < text.size(); ++i) {
    EXPECT_EQ(parser.state() == State::kDone, false) << i;
    EXPECT_EQ(parser.take(text.substr(i, 1)), 1u);
  }
  ASSERT_EQ(parser.state(), State::kDone);
  EXPECT_EQ(parser.request().body, "abc0123456789");
  EXPECT_EQ(parser.take("more"), 0u);
}

TEST(HttpRequest, Bodies) {
  EXPECT_EQ(parsed(with_fields("Content-Length: 3\r\n") + "abcd").request().body, "abc");
  EXPECT_EQ(parsed(with_fields("Content-Length: 0\r\n")).state(), State::kDone);
  EXPECT_EQ(parsed(with_fields("Content-Length: 3\r\n") + "ab").state(), State::kBody);
  EXPECT_TRUE(
      parsed(with_fields("Content-Length: 3\r\nExpect: 100-continue\r\n")).expects_continue());
  const HttpLimits limits{.body_bytes = 5};
  EXPECT_EQ(status_of(with_fields("Content-Length: 6\r\n"), limits), 413);
  EXPECT_EQ(status_of(with_fields("Content-Length: 99999999999999999999\r\n"), limits), 413);
  const std::string chunked = with_fields("Transfer-Encoding: chunked\r\n");
  EXPECT_EQ(status_of(chunked + "3\r\nabc\r\n3\r\n", limits), 413);
  EXPECT_EQ(status_of(chunked + "fffffffffffffffff\r\n", limits), 413);
  EXPECT_EQ(status_of(chunked + std::string(20'000, '0')), 431);
  // Any number of small chunks.
  std::string many = chunked;
  for (int i = 0; i < 10'000; ++i)
    many += "1\r\nx\r\n";
  EXPECT_EQ(parsed(many + "0\r\n\r\n").request().body, std::string(10'000, 'x'));
}

TEST(HttpRequest, WhetherTheConnectionStays) {
  const auto keeps = [](std::string_view line, std::string_view fields) {
    return parsed(std::string(line) + "\r\nHost: a\r\n" + std::string(fields) + "\r\n")
        .request()
        .keep_alive;
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1", ""));
  EXPECT_FALSE(keeps("GET / HTTP/1.1", "Connection: Close\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1", "Connection: x, close\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0", ""));
  EXPECT_TRUE(keeps("GET / HTTP/1.0", "Connection: keep-alive\r\n"));
}

TEST(HttpRequest, TheHostOfAWholeAddress) {
  const HttpRequest request =
      parsed("GET http://evil:1?q HTTP/1.1\r\nHost: localhost\r\n\r\n").take_request();
  EXPECT_EQ(request.host, "evil:1");
  EXPECT_EQ(request.path, "/");
  EXPECT_EQ(request.query, "q");
}

TEST(HttpRequest, WhatIsNoRequest) {
  for (const char* text : {
           "GET / HTTP/1.1\nHost: a\n\n",                      // only LF
           "GET / HTTP/1.1\r\n\r\n",                           // no host
           "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",     // two hosts
           "GET  HTTP/1.1\r\nHost: a\r\n\r\n",                 // no target
           "GET / x HTTP/1.1\r\nHost: a\r\n\r\n",              // a space in the target
           "GET x HTTP/1.1\r\nHost: a\r\n\r\n",                // a relative target
           "GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n",              // a broken escape
           "GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n",            // not ASCII
           "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",                // not a token
           "GET / HTTP/11\r\nHost: a\r\n\r\n",                 // not a version
           "GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n",  // a folded line
           "GET / HTTP/1.1\r\nHost : a\r\n\r\n",               // a space before the colon
           "GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",             // a CR inside
           "GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n",            // a control character
           "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",    // empty lines
           "\x16\x03\x01\x02\n",                               // TLS
       })
    EXPECT_EQ(status_of(text), 400) << text;
  EXPECT_EQ(status_of(std::string_view("GET / HTTP/1.1\r\n\0", 17)), 400);
  for (const char* fields : {
           "Content-Length: 1\r\nContent-Length: 1\r\n",
           "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
           "Content-Length: +1\r\n",
           "Content-Length: 1x\r\n",
           "Content-Length:\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
       })
    EXPECT_EQ(status_of(with_fields(fields)), 400) << fields;
  const std::string chunked = with_fields("Transfer-Encoding: chunked\r\n");
  for (const char* body : {"x\r\n", "-1\r\n", "\r\n", "1 1\r\n", "1\nx", "1\r\nxy\r\n"})
    EXPECT_EQ(status_of(chunked + body), 400) << body;
  EXPECT_EQ(status_of(with_fields("Transfer-Encoding: gzip, chunked\r\n")), 501);
  EXPECT_EQ(status_of(with_fields("Expect: the unexpected\r\n")), 417);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\nx: " + std::string(20'000, 'x')), 431);
  EXPECT_EQ(status_of("GET /" + std::string(20'000, 'x')), 414);
  std::string many;
  for (int i = 0; i < 101; ++i)
    many += "x: y\r\n";
  EXPECT_EQ(status_of(with_fields(many)), 431);
}

}  // namespace
}  // namespace antisd::inline io
