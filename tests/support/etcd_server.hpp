// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>
#include <istream>
#include <memory>
#include <string>

#include "acc/base/text.hpp"
#include "support/fake_etcd.hpp"

namespace acc::test {

using namespace launcher;

/// A FakeEtcd behind HTTP, on a free port of loopback; one request a connection.
class EtcdServer {
 public:
  explicit EtcdServer(boost::asio::io_context& loop)
      : acceptor_(loop, {boost::asio::ip::make_address("127.0.0.1"), 0}) {
    accept();
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port()); }

  FakeEtcd etcd = {};
  /// Requests are read and not answered.
  bool is_silent = false;

 private:
  struct Connection {
    explicit Connection(boost::asio::ip::tcp::socket accepted) : socket(std::move(accepted)) {}
    boost::asio::ip::tcp::socket socket;
    boost::asio::streambuf room;
    EtcdRequest request = {};
    std::string reply = {};
  };
  using Held = std::shared_ptr<Connection>;

  void accept() {
    acceptor_.async_accept(
        [this](const boost::system::error_code& error, boost::asio::ip::tcp::socket socket) {
          if (error) return;
          read_head(std::make_shared<Connection>(std::move(socket)));
          accept();
        });
  }

  void read_head(const Held& one) {
    boost::asio::async_read_until(
        one->socket, one->room, "\r\n\r\n", [this, one](const boost::system::error_code& error, std::size_t) {
          if (error) return;
          std::istream head(&one->room);
          std::string method;
          std::string line;
          head >> method >> one->request.path;
          std::size_t length = 0;
          while (std::getline(head, line) && line != "\r") {
            constexpr std::string_view kLength = "content-length:";
            if (!to_lower(line).starts_with(kLength)) continue;
            length = static_cast<std::size_t>(
                parse_integer(trim(std::string_view(line).substr(kLength.size()))).value_or(0));
          }
          read_body(one, length);
        });
  }

  void read_body(const Held& one, std::size_t length) {
    const std::size_t missing = length - std::min(length, one->room.size());
    boost::asio::async_read(one->socket, one->room, boost::asio::transfer_exactly(missing),
                            [this, one](const boost::system::error_code& error, std::size_t) {
                              if (!error && !is_silent) reply(one);
                              if (is_silent) kept_.push_back(one);
                            });
  }

  void reply(const Held& one) {
    const auto bytes = one->room.data();
    one->request.body.assign(boost::asio::buffers_begin(bytes), boost::asio::buffers_end(bytes));
    const EtcdReply answer = etcd.answer(one->request);
    one->reply = "HTTP/1.1 " + std::to_string(answer.status) +
                 " Said\r\nContent-Length: " + std::to_string(answer.body.size()) +
                 "\r\nConnection: close\r\n\r\n" + answer.body;
    boost::asio::async_write(one->socket, boost::asio::buffer(one->reply),
                             [one](const boost::system::error_code&, std::size_t) {});
  }

  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<Held> kept_ = {};
};

}  // namespace acc::test
