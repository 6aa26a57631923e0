// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/node_ports.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/event_loop.hpp"
#include "acc/base/text.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {

// Linux lets two sockets with SO_REUSEADDR have one port as long as not both listen: ours never does.
ReservedPort::ReservedPort(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  auto* const socket_address = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket_.get(), socket_address, size) != 0 ||
      ::getsockname(socket_.get(), socket_address, &size) != 0) {
    throw Error({.kind = ErrorKind::system,
                 .what = std::string("cannot bind the port: ") + std::strerror(errno),
                 .where = "port " + std::to_string(port),
                 .hint = "choose another port, or none to get a free one"});
  }
  port_ = ntohs(address.sin_port);
}

NodePorts::NodePorts(net::io_context& loop, const LaunchPlan& plan, OwnNames own_names,
                     const JobSecret& secret, NodeListener::OnMember on_member)
    : loop_(loop),
      plan_(plan),
      own_names_(std::move(own_names)),
      secret_(secret),
      on_member_(std::move(on_member)) {}

void NodePorts::set_address(const std::string& address) {
  address_ = plan_.rendezvous.local_addr.empty() ? address : plan_.rendezvous.local_addr;
}

// The name stays: others know this node by it. So do addresses that are gone: after a reset of the device
// they may be back when the workers connect.
void NodePorts::refresh_addresses() {
  for (std::string& address : net::own_names().addresses) {
    if (!contains(own_names_.addresses, address)) own_names_.addresses.push_back(std::move(address));
  }
}

std::vector<std::string> NodePorts::own_addresses_to_listen_on() const {
  return {contains(own_names_.addresses, address_) ? address_ : "::"};
}

void NodePorts::listen() {
  listen(own_addresses_to_listen_on());
}

void NodePorts::listen(const std::vector<std::string>& addresses) {
  addresses_ = addresses;
  listener_ = std::make_unique<NodeListener>(loop_, addresses, plan_.run_id, secret_,
                                             plan_.rendezvous.timeout_of_node(true), on_member_);
}

// A new port for each round, which no process of the round before knows. torchrun's agents use the first
// address for all rounds: for them the port stays, and the store is emptied.
std::uint16_t NodePorts::open_workers_store() {
  if (plan_.rendezvous.backend == RendezvousKind::static_) return 0;
  if (!plan_.use_agent_store || plan_.rendezvous.agents == TorchAgents::v2_4) {
    workers_port_.emplace(std::uint16_t{0});
    return workers_port_->port();
  }
  if (torchrun_knows_store_) return workers_store_->port();
  workers_store_ = std::make_unique<StoreServer>(loop_, StoreServerOptions{.addresses = addresses_});
  workers_store_->serve({.others = StoreClients::Others::strangers});
  return workers_store_->port();
}

// Serves the nodes of the round alone; and others, too, if the coordinator is seen at an address that it does
// not know of, as other nodes may be as well, or once nodes of torchrun use the store for later rounds.
void NodePorts::begin_round(const RoundBegins& message, const std::string& coordinator) {
  const Round& round = message.ready.round;
  if (!workers_store_ || round.machine_rank != 0) return;
  if (round.num_machines > message.nodes && std::exchange(torchrun_knows_store_, true))
    workers_store_->reset();
  bool is_known = !torchrun_knows_store_ && !message.clients.empty();
  if (is_known && !coordinator.empty())
    is_known = is_loopback(coordinator) || contains(message.clients, coordinator);
  using Others = StoreClients::Others;
  workers_store_->serve({.nodes = message.clients, .others = is_known ? Others::refused : Others::members});
}

std::optional<StoreAddress> parse_address(const std::string& text, const std::string& host) {
  const std::size_t colon = text.rfind(':');
  const auto port = parse_integer(colon == std::string::npos ? text : text.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  StoreAddress address = {.host = host, .port = static_cast<std::uint16_t>(*port)};
  if (colon == std::string::npos) return address;
  address.host = text.substr(0, colon);
  if (address.host.starts_with('[') && address.host.ends_with(']'))
    address.host = address.host.substr(1, address.host.size() - 2);
  return address;
}

}  // namespace acc::launcher
