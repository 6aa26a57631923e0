// SPDX-License-Identifier: Apache-2.0
// An agent without workers: own nodes on a backend. Its arguments are `key=value`; it prints events as JSON
// lines, and carries out commands from stdin: next, add ADDR, remove ADDR, finish, close. Ends at EOF, or
// when the job is closed.
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read_until.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "acc/base/running_clock.hpp"
#include "acc/rendezvous/c10d_backend.hpp"
#include "acc/rendezvous/static_backend.hpp"
#include "acc/store/client.hpp"
#include "acc/store/server.hpp"

namespace {

using nlohmann::json;

struct Arguments {
  std::map<std::string, std::string> words = {};

  std::string text(const std::string& key, const std::string& default_value) const {
    const auto found = words.find(key);
    return found == words.end() ? default_value : found->second;
  }
  int number(const std::string& key, int default_value) const {
    return std::stoi(text(key, std::to_string(default_value)));
  }
};

Arguments read_arguments(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t at = word.find('=');
    arguments.words[word.substr(0, at)] = word.substr(at + 1);
  }
  return arguments;
}

class Node {
 public:
  Node(boost::asio::io_context& loop, Arguments arguments)
      : loop_(loop),
        arguments_(std::move(arguments)),
        input_(loop, ::dup(STDIN_FILENO)),
        workers_(loop, {}),
        client_(loop) {
    acc::launcher::StoreAddress store = {arguments_.text("host", "127.0.0.1"),
                                         static_cast<std::uint16_t>(arguments_.number("port", 0))};
    if (arguments_.number("serve", 0) == 1) {
      server_.emplace(loop, acc::launcher::StoreServerOptions{.port = store.port});
      store.port = server_->port();
    }
    say({{"event", "store"}, {"port", store.port}, {"workers_port", workers_.port()}});
    client_.connect(store, acc::RunningClock::now() + std::chrono::seconds(60), {},
                    [](const std::optional<acc::Error>& error) {
                      if (error) throw acc::Error(*error);
                    });
    backend_ = make_backend(store);
    for (int i = 0; i < arguments_.number("nodes", 1); ++i) add(arguments_.text("addr", "127.0.0.1"));
    read();
  }

 private:
  std::unique_ptr<acc::launcher::RendezvousBackend> make_backend(const acc::launcher::StoreAddress& store) {
    acc::launcher::RendezvousBackend::Events events = {
        .on_round = [this](const acc::launcher::RendezvousBackend::Rounds& rounds) { tell(rounds); },
        .on_change = [this] { say({{"event", "change"}}); },
        .on_closed =
            [this] {
              say({{"event", "closed"}});
              if (arguments_.number("stay", 0) == 0) loop_.stop();
            },
        .on_error =
            [this](const acc::Error& error) {
              say({{"event", "error"}, {"text", error.what()}});
              loop_.stop();
            },
        .on_missing = [this](const std::string& text, bool) { say({{"event", "missing"}, {"text", text}}); }};
    const std::string id = arguments_.text("id", "job");
    if (arguments_.text("backend", "c10d") == "static") {
      return std::make_unique<acc::launcher::StaticBackend>(
          loop_, client_,
          acc::launcher::StaticBackendOptions{
              .master = store,
              .run_id = id,
              .num_nodes = arguments_.number("most", 2),
              .join_timeout = std::chrono::milliseconds(arguments_.number("join_ms", 60'000))},
          std::move(events));
    }
    return std::make_unique<acc::launcher::C10dBackend>(
        loop_, client_,
        acc::launcher::C10dBackendOptions{
            .run_id = id,
            .machine = {.min_nodes = static_cast<std::size_t>(arguments_.number("least", 2)),
                        .max_nodes = static_cast<std::size_t>(arguments_.number("most", 2)),
                        .join_timeout = std::chrono::milliseconds(arguments_.number("join_ms", 60'000)),
                        .last_call = std::chrono::milliseconds(arguments_.number("last_call_ms", 1000))}},
        std::move(events));
  }

  void add(const std::string& addr) {
    const int number = added_++;
    const acc::launcher::OwnNode node = {.addr = addr,
                                         .pid = ::getpid(),
                                         .local_id = number,
                                         .node_rank = arguments_.number("rank", 0) + number,
                                         .role = arguments_.text("role", "default"),
                                         .local_world_size = arguments_.number("workers", 1),
                                         .store_port = workers_.port()};
    nodes_.emplace(addr, node);
    backend_->add(node);
  }

  void tell(const acc::launcher::RendezvousBackend::Rounds& rounds) {
    if (rounds.front().second.machine_rank == 0) workers_.reset();
    json list = json::array();
    for (const auto& [node, round] : rounds) {
      list.push_back({{"addr", node.addr},
                      {"machine_rank", round.machine_rank},
                      {"num_machines", round.num_machines},
                      {"first_rank", round.first_rank},
                      {"world_size", round.world_size},
                      {"first_role_rank", round.first_role_rank},
                      {"role_world_size", round.role_world_size},
                      {"master_addr", round.master_addr},
                      {"master_port", round.master_port},
                      {"use_agent_store", round.use_agent_store}});
    }
    say({{"event", "round"}, {"nodes", list}});
  }

  void obey(const std::string& line) {
    const std::size_t space = line.find(' ');
    const std::string word = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (word == "next") backend_->next_round();
    if (word == "add") add(rest);
    if (word == "remove") backend_->remove(nodes_.at(rest));
    if (word == "finish") backend_->finish([this] { say({{"event", "finished"}}); });
    if (word == "close") backend_->close();
  }

  void read() {
    boost::asio::async_read_until(input_, boost::asio::dynamic_buffer(text_), '\n',
                                  [this](const auto& error, std::size_t size) {
                                    if (error) return loop_.stop();
                                    const std::string line = text_.substr(0, size - 1);
                                    text_.erase(0, size);
                                    obey(line);
                                    read();
                                  });
  }

  static void say(const json& event) {
    std::puts(event.dump().c_str());
    std::fflush(stdout);
  }

  boost::asio::io_context& loop_;
  Arguments arguments_;
  boost::asio::posix::stream_descriptor input_;
  std::string text_ = {};
  acc::launcher::StoreServer workers_;  // where own workers would meet
  std::optional<acc::launcher::StoreServer> server_ = {};
  acc::launcher::StoreClient client_;
  std::unique_ptr<acc::launcher::RendezvousBackend> backend_ = {};
  std::map<std::string, acc::launcher::OwnNode> nodes_ = {};
  int added_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  boost::asio::io_context loop{1};
  const Node node(loop, read_arguments(argc, argv));
  loop.run();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
