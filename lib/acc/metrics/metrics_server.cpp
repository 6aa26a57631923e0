// SPDX-License-Identifier: Apache-2.0
#include "acc/metrics/metrics_server.hpp"

#include <fmt/format.h>

#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "acc/base/error.hpp"

namespace acc::launcher {
namespace {

namespace http = boost::beast::http;
using boost::asio::ip::tcp;
using boost::system::error_code;
using Reply = http::response<http::string_body>;
using Read = std::function<std::string(MetricsFormat)>;

constexpr auto kTimeout = std::chrono::seconds(10);
constexpr int kMaxClients = 64;
constexpr std::uint64_t kMaxRequestBytes = 4096;

std::string to_text(const tcp::endpoint& address) {
  const std::string host = address.address().to_string();
  return fmt::format("{}:{}", address.address().is_v6() ? "[" + host + "]" : host, address.port());
}

Reply reply_to(const http::request<http::empty_body>& request, const Read& read) {
  Reply reply;
  reply.keep_alive(false);
  reply.set(http::field::content_type, "text/plain; charset=utf-8");
  const auto refuse = [&](http::status status, std::string text) {
    reply.result(status);
    reply.body() = std::move(text) + "\n";
  };
  const std::string_view target(request.target().data(), request.target().size());
  if (request.method() != http::verb::get && request.method() != http::verb::head) {
    reply.set(http::field::allow, "GET, HEAD");
    refuse(http::status::method_not_allowed, "only GET and HEAD are answered");
  } else if (target.substr(0, target.find('?')) != "/metrics") {
    refuse(http::status::not_found, "the metrics are at /metrics");
  } else {
    try {
      const auto accepted = request[http::field::accept];
      const MetricsFormat format = format_for({accepted.data(), accepted.size()});
      reply.body() = read(format);
      const std::string_view type = content_type(format);
      reply.set(http::field::content_type, {type.data(), type.size()});
    } catch (const std::exception& error) {
      refuse(http::status::service_unavailable, error.what());
    }
  }
  reply.prepare_payload();
  if (request.method() == http::verb::head) reply.body().clear();
  return reply;
}

}  // namespace

class MetricsServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& loop, const tcp::endpoint& address, Read read)
      : acceptor_(loop), pause_(loop), read_(std::move(read)) {
    error_code error;
    acceptor_.open(address.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(address, error);
    if (!error) acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (error)
      throw Error({.kind = ErrorKind::system,
                   .what = "cannot listen: " + error.message(),
                   .where = to_text(address),
                   .hint = error == boost::asio::error::address_in_use ? "choose another port" : ""});
  }

  std::string address() const { return to_text(acceptor_.local_endpoint()); }

  void close() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

  void accept() {
    if (is_accepting_ || clients_ == kMaxClients || !acceptor_.is_open()) return;
    is_accepting_ = true;
    acceptor_.async_accept([self = shared_from_this()](error_code error, tcp::socket connection) {
      self->is_accepting_ = false;
      if (error) return self->accept_later();
      self->serve(std::move(connection));
      self->accept();
    });
  }

 private:
  // One request and its answer, of which it holds what is needed until both are over.
  class Client;

  void serve(tcp::socket connection);

  // As where no descriptor is left.
  void accept_later() {
    pause_.expires_after(std::chrono::seconds(1));
    pause_.async_wait([self = shared_from_this()](error_code error) {
      if (!error) self->accept();
    });
  }

  tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  Read read_;
  int clients_ = 0;
  bool is_accepting_ = false;
};

class MetricsServer::Impl::Client : public std::enable_shared_from_this<Client> {
 public:
  Client(std::shared_ptr<Impl> server, tcp::socket connection)
      : server_(std::move(server)), stream_(std::move(connection)) {
    ++server_->clients_;
    parser_.header_limit(kMaxRequestBytes);
  }
  ~Client() {
    --server_->clients_;
    server_->accept();
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void serve() {
    stream_.expires_after(kTimeout);
    http::async_read_header(stream_, buffer_, parser_,
                            [self = shared_from_this()](error_code error, std::size_t /*bytes*/) {
                              if (!error) self->answer();
                            });
  }

 private:
  void answer() {
    reply_ = reply_to(parser_.get(), server_->read_);
    stream_.expires_after(kTimeout);
    http::async_write(stream_, reply_, [self = shared_from_this()](error_code error, std::size_t /*bytes*/) {
      if (!error) self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
    });
  }

  std::shared_ptr<Impl> server_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_ = boost::beast::flat_buffer(kMaxRequestBytes);
  http::request_parser<http::empty_body> parser_ = {};
  Reply reply_ = {};
};

void MetricsServer::Impl::serve(tcp::socket connection) {
  std::make_shared<Client>(shared_from_this(), std::move(connection))->serve();
}

MetricsServer::MetricsServer(boost::asio::io_context& loop, const tcp::endpoint& address, Read read)
    : impl_(std::make_shared<Impl>(loop, address, std::move(read))) {
  impl_->accept();
}

MetricsServer::~MetricsServer() {
  impl_->close();
}

std::string MetricsServer::address() const {
  return impl_->address();
}

}  // namespace acc::launcher
