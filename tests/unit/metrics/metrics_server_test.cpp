// SPDX-License-Identifier: Apache-2.0
#include "acc/metrics/metrics_server.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "acc/base/text.hpp"
#include "support/catch.hpp"
#include "support/errors.hpp"

namespace metrics_server_test {

using namespace acc;
using namespace acc::launcher;
using boost::asio::ip::tcp;

namespace {

std::string read(MetricsFormat format) {
  return format == MetricsFormat::open_metrics ? "open\n" : "plain\n";
}

// A server on a free port, with its thread.
class Served {
 public:
  explicit Served(std::function<std::string(MetricsFormat)> read)
      : server_(std::in_place, loop_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0),
                std::move(read)),
        thread_([this] { loop_.run(); }) {}
  ~Served() {
    loop_.stop();
    thread_.join();
    server_.reset();  // before its loop, as in the command
  }

  tcp::endpoint address() const {
    const std::string text = server_->address();
    const auto port = parse_integer(std::string_view(text).substr(text.rfind(':') + 1));
    return {boost::asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(*port)};
  }

  tcp::socket connect() {
    tcp::socket connection(of_clients_);
    connection.connect(address());
    return connection;
  }

  // The whole answer, until the server closes.
  std::string answer_to(const std::string& request) {
    tcp::socket connection = connect();
    boost::system::error_code ignored;
    boost::asio::write(connection, boost::asio::buffer(request), ignored);
    std::string answer;
    boost::asio::read(connection, boost::asio::dynamic_buffer(answer), ignored);
    return answer;
  }

 private:
  boost::asio::io_context loop_;
  boost::asio::io_context of_clients_;
  std::optional<MetricsServer> server_;
  std::thread thread_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("metrics_server: GET /metrics is answered in the format that is asked for", "[metrics]") {
  Served served(read);
  const std::string plain = served.answer_to("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(plain.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(has(plain, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  CHECK(plain.ends_with("\r\n\r\nplain\n"));
  const std::string open =
      served.answer_to("GET /metrics HTTP/1.0\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n");
  CHECK(has(open, "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
  CHECK(open.ends_with("\r\n\r\nopen\n"));
  const std::string head = served.answer_to("HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(has(head, "Content-Length: 6\r\n"));
  CHECK(head.ends_with("\r\n\r\n"));
}

TEST_CASE("metrics_server: anything else is refused in a line", "[metrics]") {
  Served served(read);
  const std::string other = served.answer_to("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  CHECK(other.starts_with("HTTP/1.1 404 Not Found\r\n"));
  CHECK(other.ends_with("\r\n\r\nthe metrics are at /metrics\n"));
  CHECK(served.answer_to("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            .starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
  CHECK(served.answer_to("nonsense\r\n\r\n").empty());
  CHECK(served.answer_to("GET /metrics HTTP/1.1\r\nX: " + std::string(10'000, 'x') + "\r\n\r\n").empty());
}

TEST_CASE("metrics_server: what cannot be read is an answer, and the next one is another", "[metrics]") {
  int calls = 0;
  Served served([&](MetricsFormat) -> std::string {
    if (calls++ == 0) throw std::runtime_error("no /proc");
    return "there\n";
  });
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string failed = served.answer_to(request);
  CHECK(failed.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
  CHECK(failed.ends_with("\r\n\r\nno /proc\n"));
  CHECK(served.answer_to(request).ends_with("\r\n\r\nthere\n"));
}

TEST_CASE("metrics_server: whoever says nothing keeps nobody else waiting", "[metrics]") {
  Served served(read);
  std::vector<tcp::socket> silent;
  for (int i = 0; i < 63; ++i) silent.push_back(served.connect());
  CHECK(served.answer_to("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").ends_with("plain\n"));
  // With 64 the next one waits, until one of them goes.
  silent.push_back(served.connect());
  silent.erase(silent.begin());
  CHECK(served.answer_to("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").ends_with("plain\n"));
}

TEST_CASE("metrics_server: a port that is taken is named", "[metrics]") {
  Served served(read);
  boost::asio::io_context loop;
  const std::string taken = "127.0.0.1:" + std::to_string(served.address().port());
  CHECK(test::error_of([&] { MetricsServer(loop, served.address(), read); }) ==
        taken + ": cannot listen: Address already in use (choose another port)");
}

}  // namespace metrics_server_test
