// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/searching.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/base/own_addresses.hpp"
#include "acc/base/text.hpp"
#include "acc/rendezvous/etcd_curl.hpp"
#include "acc/rendezvous/hosting.hpp"
#include "acc/store/file_store.hpp"
#include "acc/store/network.hpp"

namespace acc::launcher {
namespace {

using boost::system::error_code;

// The local address of the route to the first of `addresses` to which there is one.
std::string address_towards_any(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses)
    if (std::string own_address = net::address_towards(address); !own_address.empty()) return own_address;
  return "127.0.0.1";
}

// The local address of the route out of this machine, if the store or etcd is on this machine itself.
std::string address_of_route(const std::vector<std::string>& addresses) {
  // Reserved for documentation (RFC 5737): no host has it, and it is routed like any other.
  constexpr const char* kElsewhere = "192.0.2.1";
  const std::string address = address_towards_any(addresses);
  return is_loopback(address) ? address_towards_any({kElsewhere}) : address;
}

}  // namespace

Searching::Searching(NodeContext& node, Start start, Events events)
    : NodeState(node), start_(start), events_(std::move(events)), resolver_(node.loop), retry_(node.loop) {}

Searching::~Searching() {
  if (connecting_) connecting_->cancel();
}

void Searching::start() {
  if (start_ == Start::endpoint) return ask_endpoint();
  if (node_.settings.store_file) return meet_in_file();
  if (node_.is_static() && node_.settings.node_rank != 0) return ask_endpoint();
  if (node_.coordinator_key) return claim_key();
  resolve_endpoint([this](const HostLookup& endpoint) {
    if (node_.is_static()) note_wrong_endpoint(endpoint);
    on_resolved(endpoint.addresses);
  });
}

void Searching::resolve_endpoint(std::function<void(const HostLookup&)> on_done) {
  resolver_.resolve(node_.settings.endpoint_host, guard_(std::move(on_done)));
}

// The other nodes would wait at an address behind which this one need not be; with NAT it may be right.
void Searching::note_wrong_endpoint(const HostLookup& endpoint) {
  const std::string& host = node_.settings.endpoint_host;
  if (!endpoint.error.empty()) {
    node_.events.on_notice(
        fmt::format("{} cannot be resolved here: {}; this node, number 0, hosts the job and "
                    "listens on all its addresses",
                    host, endpoint.error));
  } else if (!names_this_machine(host, endpoint.addresses, node_.ports.own_names())) {
    node_.events.on_notice(
        fmt::format("{} is not an address of this machine, which hosts the job as node 0; only one node may "
                    "have this rank",
                    host));
  }
}

void Searching::on_resolved(const Addresses& addresses) {
  const RendezvousPlan& settings = node_.settings;
  if (node_.is_etcd()) return choose_address(addresses, [this] { open_etcd(); });
  const bool hosts = node_.is_static() || settings.is_host.value_or(names_this_machine(
                                              settings.endpoint_host, addresses, node_.ports.own_names()));
  if (!hosts) {
    if (begins_with_own_name(settings.endpoint_host, node_.ports.own_names())) note_namesake(addresses);
    return ask_endpoint();
  }
  if (!may_hold_connections()) return;
  host_addresses_ = addresses;
  if (!try_to_host(addresses)) ask_endpoint();
}

// Behind a NAT, for instance, the name may be this machine's after all.
void Searching::note_namesake(const Addresses& addresses) {
  const RendezvousPlan& settings = node_.settings;
  if (settings.is_host) return;
  node_.events.on_notice(fmt::format(
      "{} is {}, which is not an address of this machine, {}: another machine hosts the job; if this one is "
      "to, pass --rdzv-conf is_host=true here",
      settings.endpoint_host, join(addresses, ", "), node_.ports.own_names().host_name));
}

// If not, the node has failed.
bool Searching::may_hold_connections() {
  rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  try {
    const std::string warning = check_open_files(files.rlim_cur, node_.plan);
    if (!warning.empty()) node_.events.on_notice(warning);
  } catch (const Error& error) {
    node_.events.on_failure(error.what(), exit_code(error.kind()));
    return false;
  }
  return true;
}

// Returns false if another node of this machine hosts already.
bool Searching::try_to_host(const Addresses& addresses) {
  const RendezvousPlan& settings = node_.settings;
  const bool is_required = node_.is_static() || settings.is_host.value_or(false);
  const std::vector<std::string>& own_addresses = node_.ports.own_names().addresses;
  std::unique_ptr<Host> host;
  try {
    node_.ports.set_address(settings.endpoint_host.empty() ? "127.0.0.1" : settings.endpoint_host);
    Addresses listening = addresses_to_listen_on(settings.endpoint_host, addresses, node_.ports.own_names());
    if (contains(own_addresses, settings.local_addr) && !contains(listening, settings.local_addr) &&
        listening.front() != "::")
      listening.push_back(settings.local_addr);
    node_.ports.listen(listening);
    host = std::make_unique<Host>(node_.loop, node_.plan, node_.events.on_message, listening,
                                  settings.endpoint_port, node_.ports.port(), Succession{});
  } catch (const Error& error) {
    node_.ports.close();
    log::debug("rendezvous: cannot host the job at {}: {}", node_.endpoint(), error.what());
    if (!is_required) return false;
    node_.events.on_failure(error.what(), exit_code(error.kind()));
    return true;
  }
  events_.on_hosting(std::move(host), fmt::format("it hosts the job at {}, and nodes connect to port {}",
                                                  node_.endpoint(), node_.ports.port()));
  return true;
}

void Searching::ask_endpoint() {
  if (node_.coordinator_key) return claim_key();
  limit_search();
  client_ = std::make_unique<StoreClient>(node_.loop, node_.settings.read_timeout);
  const auto on_failed = [this](const std::string& reason) {
    log::debug("rendezvous: {}: {}", node_.endpoint(), reason);
    node_.last_try = reason;
    has_failed_ = true;
    // A host that was about to end may have had the port until now.
    if (!host_addresses_.empty()) try_to_host(host_addresses_);
  };
  client_->connect({node_.settings.endpoint_host, node_.settings.endpoint_port}, node_.join_deadline,
                   guard_(on_failed), guard_([this](const std::optional<Error>& error) {
                     if (error)
                       return node_.events.on_failure(error->what(), exit_code(ErrorKind::rendezvous));
                     client_->get(
                         coordinator_key(node_.plan.run_id),
                         guard_([this](StoreOutcome outcome, const std::optional<std::string>& text) {
                           if (outcome != StoreOutcome::done) return ask_endpoint_later();
                           limit_.reset();
                           on_coordinator_told(text);
                         }));
                   }));
}

// A job that has lost its coordinator looks for it until the join timeout.
void Searching::limit_search() {
  const auto timeout = node_.settings.endpoint_timeout;
  if (limit_ || !timeout || start_ != Start::beginning) return;
  limit_.emplace(node_.loop, *timeout);
  limit_->async_wait(guard_([this, timeout](const error_code& error) {
    if (error || !limit_) return;
    const Error no_answer(
        {.kind = ErrorKind::rendezvous,
         .what = fmt::format("no store has answered for {} (read_timeout){}", seconds_text(*timeout),
                             has_failed_ ? ": " + node_.last_try : ""),
         .where = node_.endpoint(),
         .hint = "check that the node that hosts it runs, and that its port can be reached"});
    node_.events.on_failure(no_answer.what(), exit_code(ErrorKind::rendezvous));
  }));
}

void Searching::ask_endpoint_later() {
  retry_.expires_after(kRetryInterval);
  retry_.async_wait(guard_([this](const error_code& error) {
    if (!error) ask_endpoint();
  }));
}

// A host that runs acc publishes where nodes connect, another launcher's does not.
void Searching::on_coordinator_told(const std::optional<std::string>& text) {
  if (!text) return meet_at_other_launchers_store();
  const std::optional<StoreAddress> address = parse_address(*text, node_.settings.endpoint_host);
  if (!address) {
    return node_.events.on_failure(
        fmt::format("{} has an invalid coordinator address: '{}'", node_.endpoint(), *text),
        exit_code(ErrorKind::rendezvous));
  }
  log::debug("rendezvous: {} says that nodes connect to {}", node_.endpoint(), to_string(*address));
  connect(*address);
}

void Searching::connect(const StoreAddress& address) {
  node_.coordinator_address = to_string(address);
  connecting_ = std::make_shared<Connecting>(node_.loop);
  connecting_->start(
      address.host, address.port, node_.connect_timeout(),
      guard_([this, address](std::optional<net::tcp::socket> socket, const std::string& reason) {
        if (socket) return events_.on_connected(std::move(*socket), address);
        node_.last_try = "the host's port for nodes: " + reason;
        // What a dead host has said of itself stays for a while.
        ask_endpoint_later();
      }));
}

void Searching::meet_at_other_launchers_store() {
  if (node_.plan.restarts_without_progress > 0) {
    return node_.events.on_failure(
        node_.endpoint() +
            " is another launcher's store, where no node of acc decides on restarts: leave out "
            "--restarts-without-progress",
        exit_code(ErrorKind::usage));
  }
  if (node_.secret) {
    node_.events.on_notice(
        node_.endpoint() +
        " is another launcher's store, whose nodes prove no secret: they are trusted without a proof");
  }
  resolve_endpoint([this](const HostLookup& endpoint) {
    const auto meet = [this] {
      meet_at(std::move(client_), fmt::format("the store at {} is another launcher's", node_.endpoint()));
    };
    if (!names_loopback(node_.settings.endpoint_host)) return choose_address(endpoint.addresses, meet);
    node_.ports.set_address(address_towards_any(endpoint.addresses));
    meet();
  });
}

// As torchrun's nodes do: nobody hosts a file, so nobody connects.
void Searching::meet_in_file() {
  choose_address({}, [this] {
    const std::string file = node_.settings.store_file->string();
    FileStore::Options options;
    options.timeout = node_.settings.read_timeout;
    meet_at(std::make_unique<FileStore>(node_.loop, file, options), "the nodes meet in " + file);
  });
}

// The address at which others reach this node: that of the route to `addresses` or out of this machine. In a
// network without a default route, as of a cluster's compute nodes, none may tell.
void Searching::choose_address(const Addresses& addresses, const std::function<void()>& on_chosen) {
  const OwnNames& machine = node_.ports.own_names();
  const auto choose = [this, on_chosen](const std::string& address) {
    node_.ports.set_address(address);
    on_chosen();
  };
  const std::string address = address_of_route(addresses);
  if (!is_loopback(address) || !node_.settings.local_addr.empty()) return choose(address);
  if (likely_address(machine, {}).empty()) {
    if (node_.settings.max_nodes > 1) {
      node_.events.on_notice(
          "this machine has no address other than loopback, so only nodes on it can meet; "
          "--local-addr names one that others reach");
    }
    return choose(address);
  }
  resolver_.resolve(machine.host_name, guard_([machine, choose](const HostLookup& own_name) {
                      choose(likely_address(machine, own_name.addresses));
                    }));
}

void Searching::meet_at(std::unique_ptr<Store> store, const std::string& reason) {
  node_.ports.listen_for_workers_alone();
  events_.on_hosting(
      std::make_unique<Host>(node_.loop, node_.plan, node_.events.on_message, std::move(store)), reason);
}

// Listens first, since the key names this node's port.
void Searching::open_etcd() {
  const RendezvousPlan& settings = node_.settings;
  try {
    node_.etcd = std::make_unique<EtcdCurl>(
        node_.loop, EtcdCurlOptions{.url = settings.protocol + "://" + node_.endpoint(),
                                    .cert = settings.cert,
                                    .key = settings.key,
                                    .cacert = settings.cacert});
    node_.ports.listen();
  } catch (const Error& error) {
    return node_.events.on_failure(error.what(), exit_code(error.kind()));
  }
  node_.coordinator_key = std::make_unique<EtcdCoordinatorKey>(
      node_.loop, *node_.etcd, etcd_coordinator_key(settings.etcd_prefix, node_.plan.run_id),
      node_.events.on_key_lost);
  claim_key();
}

void Searching::claim_key() {
  using ClaimResult = EtcdCoordinatorKey::ClaimResult;
  using Outcome = ClaimResult::Outcome;
  node_.coordinator_key->claim(
      to_string(node_.ports.store_address()), "", guard_([this](const ClaimResult& result) {
        switch (result.outcome) {
          case Outcome::acquired:
            return host_as_key_says();
          case Outcome::held:
            return on_coordinator_told(result.text);
          case Outcome::refused:
            return node_.events.on_failure(fmt::format("etcd at {}: {}", node_.endpoint(), result.text),
                                           exit_code(ErrorKind::rendezvous));
          case Outcome::failed:
            break;
        }
        node_.last_try = result.text;
        ask_endpoint_later();
      }));
}

void Searching::host_as_key_says() {
  if (!may_hold_connections()) return;
  std::unique_ptr<Host> host;
  try {
    host = host_at_own_port(node_, {});
  } catch (const Error& error) {
    return node_.events.on_failure(error.what(), exit_code(error.kind()));
  }
  events_.on_hosting(std::move(host),
                     "etcd's key is this node's, at " + to_string(node_.ports.store_address()));
}

AskingLater::AskingLater(NodeContext& node, std::function<void()> ask_again)
    : NodeState(node), ask_again_(std::move(ask_again)), retry_(node.loop) {}

void AskingLater::start() {
  retry_.expires_after(kRetryInterval);
  retry_.async_wait(guard_([this](const boost::system::error_code& error) {
    if (!error) ask_again_();
  }));
}

}  // namespace acc::launcher
