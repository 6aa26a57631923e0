// SPDX-License-Identifier: Apache-2.0
#include "acc/rendezvous/cluster_node.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "acc/base/error.hpp"
#include "acc/base/log.hpp"
#include "acc/base/text.hpp"
#include "acc/rendezvous/etcd_curl.hpp"
#include "acc/rendezvous/inheritance.hpp"
#include "acc/rendezvous/introduction.hpp"
#include "acc/store/file_store.hpp"

namespace acc::launcher {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr auto kReminder = std::chrono::seconds(10);
constexpr std::chrono::milliseconds kConnectTimeout = std::chrono::seconds(3);
// How often a hub that is not where the job's endpoint is looks whether somebody hosts there.
constexpr auto kWatch = std::chrono::seconds(1);

// Nodes beyond those that the job can have which a host keeps linked; more are told to come again.
constexpr std::size_t kMaxSurplus = 256;

// The address that this machine has for the way to `host`; nothing is sent.
std::string address_towards(asio::io_context& loop, const std::vector<std::string>& addresses) {
  for (const std::string& text : addresses) {
    error_code error;
    const auto address = asio::ip::make_address(text, error);
    asio::ip::udp::socket socket(loop);
    if (!error) socket.connect({address, 9}, error);
    if (error) continue;
    const auto local = socket.local_endpoint(error);
    if (!error) return local.address().to_string();
  }
  return "127.0.0.1";
}

// An etcd on this machine does not say how others reach it; the way out of it does.
std::string address_for_others(asio::io_context& loop, const std::vector<std::string>& addresses) {
  // Of the addresses for documentation: routed as any other is, and nobody's.
  constexpr const char* kElsewhere = "192.0.2.1";
  const std::string towards = address_towards(loop, addresses);
  error_code error;
  const bool local = asio::ip::make_address(towards, error).is_loopback();
  return local ? address_towards(loop, {kElsewhere}) : towards;
}

// `port`, or `host:port` of a hub elsewhere.
std::optional<StoreAddress> parse_hub(const std::string& text, const std::string& host) {
  const std::size_t colon = text.rfind(':');
  const auto port = parse_integer(colon == std::string::npos ? text : text.substr(colon + 1));
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  StoreAddress place = {.host = host, .port = static_cast<std::uint16_t>(*port)};
  if (colon == std::string::npos) return place;
  place.host = text.substr(0, colon);
  if (place.host.starts_with('[') && place.host.ends_with(']'))
    place.host = place.host.substr(1, place.host.size() - 2);
  return place;
}

StoreAddress place_of(const NodeInfo& node) {
  return {node.addr, node.link_port};
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

bool is_loopback(const std::string& text) {
  error_code error;
  const auto address = asio::ip::make_address(text, error);
  return !error && address.is_loopback();
}

}  // namespace

ClusterNode::ClusterNode(asio::io_context& loop, const LaunchPlan& plan)
    : loop_(loop),
      plan_(plan),
      wanted_(plan.rendezvous),
      own_(own_names()),
      secret_(job_secret(plan.rendezvous)),
      resolver_(loop),
      reminder_(loop),
      redirect_(loop),
      watch_(loop) {}

ClusterNode::~ClusterNode() {
  stop_seeking();
  if (link_) link_->close();
}

void ClusterNode::join() {
  wants_round_ = true;
  join_deadline_ = Clock::now() + wanted_.join_timeout;
  wait_for_round();
  const bool is_linked = link_ && link_->is_open();
  if (is_linked && !introduced_) return;  // when it is, it asks
  if (host_ || is_linked) return ask_for_round();
  if (search_ == Search::none) search();
}

void ClusterNode::fail(const RoundOver& failure) {
  say(WorkerFailed{round_, failure});
}

void ClusterNode::finish() {
  say(WorkersDone{round_});
}

void ClusterNode::ask_for_round() {
  if (link_) asked_ = port_of_hub();
  say(Join{open_workers_store()});
}

void ClusterNode::leave(const std::string& why, int code) {
  wants_round_ = false;
  reminder_.cancel();
  redirect_.cancel();
  stop_seeking();
  const bool early = !std::exchange(over_, true);
  const std::string because = why.empty() ? "it has ended" : why;
  // At once: the next job of this name is not to find the one that ends.
  if (hub_key_) hub_key_->release();
  const auto left = [this] {
    if (!hub_key_) return tell(Left{});
    hub_key_->release([this] { tell(Left{}); });
  };
  if (host_) {
    // Whoever links to this node either goes because the job is over, or sees that it is gone.
    leaving_ = early;
    if (early) host_->leave({.why = because, .exit_code = code});
    return host_->wait_until_alone(plan_.shutdown_timeout + wanted_.close_timeout, left);
  }
  if (!link_) return left();
  if (early) link_->send(Leave{.why = because, .exit_code = code});
  link_->close(left);
}

// --- Finding the job

void ClusterNode::search() {
  search_ = Search::host;
  log::debug("rendezvous: looks for the job at {}",
             wanted_.store_file ? wanted_.store_file->string() : endpoint());
  if (wanted_.store_file) return meet_in_file();
  if (wanted_.backend == RendezvousBackend::static_ && wanted_.node_rank != 0) return dial();
  if (hub_key_) return seek_hub_key();
  resolve_endpoint([this](const std::vector<std::string>& addresses) { resolved(addresses); });
}

// None when the name is not known; nothing once the job is over.
void ClusterNode::resolve_endpoint(std::function<void(const std::vector<std::string>&)> done) {
  resolver_.async_resolve(wanted_.endpoint_host, "",
                          [this, done = std::move(done)](const error_code& error, const auto& results) {
                            if (error == asio::error::operation_aborted || over_) return;
                            std::vector<std::string> addresses;
                            if (!error) {
                              for (const auto& entry : results)
                                addresses.push_back(entry.endpoint().address().to_string());
                            }
                            done(addresses);
                          });
}

void ClusterNode::resolved(const std::vector<std::string>& addresses) {
  if (is_etcd()) return open_etcd(addresses);
  const bool hosts = wanted_.backend == RendezvousBackend::static_ ||
                     wanted_.is_host.value_or(names_this_machine(wanted_.endpoint_host, addresses, own_));
  if (!hosts || !try_to_host(addresses)) dial();
}

// False: another node of this machine does it already.
bool ClusterNode::try_to_host(const std::vector<std::string>& addresses) {
  const bool must = wanted_.backend == RendezvousBackend::static_ || wanted_.is_host.value_or(false);
  try {
    addr_ = wanted_.local_addr.empty() ? wanted_.endpoint_host : wanted_.local_addr;
    if (addr_.empty()) addr_ = "127.0.0.1";
    std::vector<std::string> places = addresses_to_listen_on(wanted_.endpoint_host, addresses, own_);
    if (contains(own_.addresses, wanted_.local_addr) && !contains(places, wanted_.local_addr) &&
        places.front() != "::") {
      places.push_back(wanted_.local_addr);
    }
    open_ports(places);
    host_ = std::make_unique<Host>(
        loop_, plan_, [this](const NodeMessage& message) { take(message); }, places, wanted_.endpoint_port,
        links_->port(), Host::Inheritance{});
  } catch (const Error& error) {
    links_.reset();
    log::debug("rendezvous: cannot host the job at {}: {}", endpoint(), error.what());
    if (!must) return false;
    give_up(error.what(), exit_code(error.kind()));
    return true;
  }
  search_ = Search::none;
  log::debug("rendezvous: hosts the job at {}, its nodes connect to port {}", endpoint(), links_->port());
  host_->hello(introduce(), history());
  if (wants_round_) ask_for_round();
  return true;
}

void ClusterNode::dial() {
  if (hub_key_) return seek_hub_key();
  client_ = std::make_unique<StoreClient>(loop_, wanted_.read_timeout);
  const auto failed = [this](const std::string& why) {
    log::debug("rendezvous: {}: {}", endpoint(), why);
    last_try_ = why;
  };
  client_->connect({wanted_.endpoint_host, wanted_.endpoint_port}, join_deadline_, failed,
                   [this](const std::optional<Error>& error) {
                     if (error) return give_up(error->what(), exit_code(ErrorKind::rendezvous));
                     client_->get(hub_key(plan_.run_id),
                                  [this](StoreOutcome outcome, const std::optional<std::string>& hub) {
                                    if (outcome != StoreOutcome::done) return dial();
                                    store_answered(hub);
                                  });
                   });
}

void ClusterNode::dial_later() {
  watch_.expires_after(kWatch);
  watch_.async_wait([this](const error_code& error) {
    if (!error && !over_) dial();
  });
}

// Where nodes of acc link is told by a host that is one; another launcher's says nothing.
void ClusterNode::store_answered(const std::optional<std::string>& hub) {
  if (!hub) log::debug("rendezvous: the store at {} is another launcher's", endpoint());
  if (!hub) return meet_alone();
  const std::optional<StoreAddress> place = parse_hub(*hub, wanted_.endpoint_host);
  if (!place) {
    return give_up(fmt::format("{} says '{}' where its nodes should link", endpoint(), *hub),
                   exit_code(ErrorKind::rendezvous));
  }
  hub_place_ = to_string(*place);
  log::debug("rendezvous: {} says that nodes connect to {}", endpoint(), hub_place_);
  connecting_ = std::make_shared<Connecting>(loop_);
  connecting_->start(place->host, place->port, connect_timeout(),
                     [this](std::optional<asio::ip::tcp::socket> socket, const std::string& why) {
                       if (socket) return linked(std::move(*socket));
                       last_try_ = "the host's port for nodes: " + why;
                       if (!hub_key_) return dial();
                       // The key of a host that has died stays for a while.
                       dial_later();
                     });
}

// Whoever may come to host listens before it is known.
void ClusterNode::open_etcd(const std::vector<std::string>& addresses) {
  addr_ = wanted_.local_addr.empty() ? address_for_others(loop_, addresses) : wanted_.local_addr;
  try {
    etcd_ = std::make_unique<EtcdCurl>(loop_, EtcdCurlOptions{.url = wanted_.protocol + "://" + endpoint(),
                                                              .cert = wanted_.cert,
                                                              .key = wanted_.key,
                                                              .cacert = wanted_.cacert});
    open_ports({contains(own_.addresses, addr_) ? addr_ : "::"});
  } catch (const Error& error) {
    return give_up(error.what(), exit_code(error.kind()));
  }
  hub_key_ = std::make_unique<EtcdHubKey>(loop_, *etcd_, etcd_hub_key(wanted_.etcd_prefix, plan_.run_id),
                                          [this](const std::string& place) { hub_key_lost(place); });
  seek_hub_key();
}

void ClusterNode::seek_hub_key() {
  using How = EtcdHubKey::Claimed::How;
  hub_key_->claim(own_place(), "", [this](const EtcdHubKey::Claimed& claimed) {
    if (over_) return;
    switch (claimed.how) {
      case How::own:
        return host_at_own_port({});
      case How::held:
        return store_answered(claimed.text);
      case How::refused:
        return give_up(fmt::format("etcd at {}: {}", endpoint(), claimed.text),
                       exit_code(ErrorKind::rendezvous));
      case How::failed:
        break;
    }
    last_try_ = claimed.text;
    dial_later();
  });
}

// Where nodes are told of the host elsewhere than at its store.
void ClusterNode::host_at_own_port(const Host::Inheritance& inherited) {
  search_ = Search::none;
  try {
    host_ = std::make_unique<Host>(
        loop_, plan_, [this](const NodeMessage& message) { take(message); }, listen_addresses_, 0,
        links_->port(), inherited);
  } catch (const Error& error) {
    return give_up(error.what(), exit_code(error.kind()));
  }
  log::debug("rendezvous: this node coordinates the job now, at {}", own_place());
  sign(introduce());
  host_->hello(introduce(), history());
  for (const auto& follower : std::exchange(followers_, {})) {
    if (follower->link->is_open()) host_->adopt(*follower);
  }
  if (wants_round_) ask_for_round();
}

void ClusterNode::meet_alone() {
  if (secret_) {
    tell(Notice{endpoint() +
                " is another launcher's, whose nodes prove no secret: they are believed unproven"});
  }
  resolve_endpoint([this](const std::vector<std::string>& addresses) {
    addr_ = wanted_.local_addr.empty() ? address_towards(loop_, addresses) : wanted_.local_addr;
    meet_at(std::move(client_));
  });
}

// As torchrun's nodes do: nobody hosts a file, so nobody is linked.
void ClusterNode::meet_in_file() {
  addr_ = wanted_.local_addr.empty() ? address_for_others(loop_, {}) : wanted_.local_addr;
  FileStore::Options options;
  options.timeout = wanted_.read_timeout;
  meet_at(std::make_unique<FileStore>(loop_, *wanted_.store_file, options));
}

void ClusterNode::meet_at(std::unique_ptr<Store> store) {
  listen_addresses_ = {contains(own_.addresses, addr_) ? addr_ : "::"};
  host_ = std::make_unique<Host>(
      loop_, plan_, [this](const NodeMessage& message) { take(message); }, std::move(store));
  search_ = Search::none;
  host_->hello(introduce(), history());
  if (wants_round_) ask_for_round();
}

void ClusterNode::linked(asio::ip::tcp::socket socket) {
  const auto link = std::make_shared<Link>(std::move(socket), node_timeout());
  attach(link);
  link->start();
}

void ClusterNode::attach(std::shared_ptr<Link> link) {
  link_ = std::move(link);
  link_->set_timeout(node_timeout());
  introduced_ = false;
  link_->hear([](const NodeMessage&) {}, [this](const LinkLoss& loss) { hub_lost(loss); });
  link_->on_silence([this](const Silence& silence) {
    tell(Notice{silence_text("the node that hosts the job", silence, node_timeout())});
  });
  client_.reset();
  search_ = Search::none;
  if (!links_) {
    const std::string here = link_->local_address();
    addr_ = wanted_.local_addr.empty() ? here : wanted_.local_addr;
    try {
      open_ports({contains(own_.addresses, addr_) ? addr_ : "::"});
    } catch (const Error& error) {
      return give_up(error.what(), exit_code(error.kind()));
    }
  }
  acc::launcher::introduce(
      link_, secret_, {.run_id = plan_.run_id, .node = introduce(), .history = history()},
      [this](bool is_proven) { introduced(is_proven); }, [this](const LinkLoss& loss) { hub_lost(loss); });
}

// Whoever hosts the job is heard from here on.
void ClusterNode::introduced(bool is_proven) {
  if (!is_proven) {
    const std::string place = link_->peer_address();
    std::exchange(link_, nullptr)->close();
    return give_up(
        fmt::format("{} does not prove that it knows the secret of this node: give all nodes of the "
                    "job the same, by --rdzv-conf secret_file=FILE or {}",
                    place, kSecretVariable),
        exit_code(ErrorKind::usage));
  }
  introduced_ = true;
  log::debug("rendezvous: connected to the coordinator at {}", link_->peer_address());
  link_->hear([this](const NodeMessage& message) { take(message); },
              [this](const LinkLoss& loss) { hub_lost(loss); });
  if (cut_off_) {
    asked_ = port_of_hub();
    redirect_followers_later();
  }
  if (wants_round_) ask_for_round();
}

void ClusterNode::open_ports(const std::vector<std::string>& addresses) {
  listen_addresses_ = addresses;
  links_ = std::make_unique<LinkListener>(
      loop_, addresses, plan_.run_id, secret_, wanted_.timeout_of_node(true),
      [this](const std::shared_ptr<Follower>& follower) { greeted(follower); });
}

// A new port for each round: nobody of the round before knows it. But agents of torchrun keep for ever what
// they were told first: for them it stays, and is emptied.
std::uint16_t ClusterNode::open_workers_store() {
  if (wanted_.backend == RendezvousBackend::static_) return 0;
  if (!plan_.use_agent_store || wanted_.agents == TorchAgents::v2_4) {
    workers_port_.emplace(std::uint16_t{0});
    return workers_port_->port();
  }
  if (torchrun_knows_store_) return workers_store_->port();
  workers_store_ = std::make_unique<StoreServer>(loop_, StoreServerOptions{.addresses = listen_addresses_});
  workers_store_->serve({.others = StoreClients::Others::strangers});
  return workers_store_->port();
}

// --- What the hub says

void ClusterNode::say(const NodeMessage& message) {
  if (host_) return host_->take(message);
  if (link_) link_->send(message);
}

void ClusterNode::take(const NodeMessage& message) {
  if (const auto* begins = std::get_if<RoundBegins>(&message)) begin(*begins);
  if (const auto* ends = std::get_if<RoundEnds>(&message)) ended(ends->over);
  if (const auto* waiting = std::get_if<Waiting>(&message)) told_to_wait(*waiting);
  if (const auto* drop = std::get_if<Dropped>(&message)) dropped(drop->why);
  if (const auto* moved = std::get_if<Moved>(&message)) {
    move_to({.addr = moved->addr, .link_port = moved->link_port});
  }
  if (std::holds_alternative<Full>(message)) wait_for_place();
  if (std::holds_alternative<JobEnds>(message)) {
    log::debug("rendezvous: all workers of all nodes have succeeded");
    over_ = true;
    tell(JobDone{});
  }
}

void ClusterNode::told_to_wait(const Waiting& message) {
  if (!message.heirs.empty()) heirs_ = message.heirs;
  tell(Notice{message.text});
}

void ClusterNode::begin(const RoundBegins& message) {
  round_ = message.number;
  restarts_ = message.ready.restarts;
  const Round& round = message.ready.round;
  log::debug("rendezvous: round {} begins, this node is {} of {}, its workers are ranks {} and up of {}",
             round_, round.machine_rank, round.num_machines, round.first_rank, round.world_size);
  if (workers_store_ && round.machine_rank == 0 && round.num_machines > message.nodes) {
    if (std::exchange(torchrun_knows_store_, true)) workers_store_->reset();
  }
  if (round.machine_rank == 0) serve_round(message.clients);
  nodes_ = message.nodes;
  heirs_ = message.heirs;
  hub_ = message.hub;
  places_ = message.places;
  wants_round_ = false;
  waits_for_place_ = false;
  in_round_ = true;
  cut_off_ = false;
  asked_ = 0;
  if (link_) link_->set_timeout(node_timeout());
  reminder_.cancel();
  tell(message.ready);
}

// The workers' store is for the nodes of the round. Not where the hub is seen at an address that it does not
// know of, so that others may be as well; and not once nodes of torchrun keep it for rounds to come.
void ClusterNode::serve_round(const std::vector<std::string>& clients) {
  if (!workers_store_) return;
  bool known = !torchrun_knows_store_ && !clients.empty();
  if (known && link_) {
    const std::string hub = link_->peer_address();
    known = is_loopback(hub) || contains(clients, hub);
  }
  using Others = StoreClients::Others;
  workers_store_->serve({.nodes = clients, .others = known ? Others::refused : Others::members});
}

// Of one attempt: the next follows, and TCP's own repetitions in one are few.
std::chrono::milliseconds ClusterNode::connect_timeout() const {
  return std::min(wanted_.timeout_of_node(true), kConnectTimeout);
}

// How long the hub may be silent.
std::chrono::milliseconds ClusterNode::node_timeout() const {
  return wanted_.timeout_of_node(!in_round_ || survives_loss());
}

bool ClusterNode::survives_loss() const {
  return wanted_.survives_loss(plan_.max_restarts - restarts_);
}

void ClusterNode::ended(const RoundOver& over) {
  in_round_ = false;
  log::debug("rendezvous: round {} is over, {}: {}", round_,
             over.again ? "the nodes meet again" : "as is the job",
             over.text.empty() ? "a worker failed" : over.text);
  if (!over.again) {
    over_ = true;
    reminder_.cancel();
  }
  tell(over);
}

// --- When the hub is lost

void ClusterNode::hub_lost(const LinkLoss& loss) {
  if (!loss.gone) link_->send(Leave{.why = "the hub was silent", .deposed = true});
  link_.reset();
  if (over_) return;
  const std::string text =
      fmt::format("the node that hosts the job was lost: {}", loss.gone ? "its connection closed" : loss.why);
  last_try_ = text;
  log::debug("rendezvous: {}", text);
  if (cut_off_) return lost_again(loss);
  if (round_ == 0 && heirs_.empty()) {
    search_ = Search::none;
    if (wants_round_) search();
    return;
  }
  if (in_round_ && !survives_loss()) return give_up(text, exit_code(ErrorKind::rendezvous));
  if (std::exchange(in_round_, false)) tell(RoundOver{.again = true, .text = text});
  seek_again(loss);
}

// A node that this one has linked to while it looks for the job.
void ClusterNode::lost_again(const LinkLoss& loss) {
  if (loss.gone && hub_place_ == to_string(lost_hub_)) note_dead(lost_hub_, true);
  seek_later();
}

// The others have gone on: this node is a new one to them.
void ClusterNode::dropped(const std::string& why) {
  log::debug("rendezvous: the others went on without this node: {}", why);
  round_ = 0;
  if (std::exchange(in_round_, false)) {
    tell(RoundOver{.again = true, .text = why + ", and the others went on without it"});
  }
  std::exchange(link_, nullptr)->close();
  seek_again({.why = why});
}

void ClusterNode::move_to(const NodeInfo& hub) {
  if (over_) return;
  stop_seeking();
  if (hub_key_) hub_key_->release();
  hub_place_ = to_string(StoreAddress{hub.addr, hub.link_port});
  log::debug("rendezvous: the coordinator of the job is at {}", hub_place_);
  if (link_) std::exchange(link_, nullptr)->close();
  if (host_) {
    signpost_ = host_->move_to(hub);
    // Not at once: what called this may be the host's own.
    boost::asio::post(loop_, [host = std::shared_ptr<Host>(std::move(host_))] {});
  }
  if (std::exchange(in_round_, false)) {
    tell(RoundOver{.again = true, .text = "the job runs already, on other nodes"});
  }
  if (!std::exchange(cut_off_, true)) {
    lost_hub_.port = 0;
    hub_closed_ = false;
    dead_.clear();
  }
  asked_ = 0;
  redirect_followers();
  search_ = Search::again;
  try_place(place_of(hub), [this] { seek_later(); });
}

void ClusterNode::sign(const NodeInfo& hub) {
  if (signpost_) signpost_->set(hub_key(plan_.run_id), to_string(StoreAddress{hub.addr, hub.link_port}));
}

// A node that died as the host and came back hosts again, and whoever asks the endpoint finds it there; one
// that was only cut off has kept its part of the job. So that there is one job and not two, the hub tells
// both where it is. A hub that leads the smaller part goes to the other instead.
void ClusterNode::watch_endpoint() {
  watch_.expires_after(kWatch);
  watch_.async_wait([this](const error_code& error) {
    if (error || over_ || !host_) return;
    if (hub_key_) return claim_hub_key();
    client_ = std::make_unique<StoreClient>(loop_, connect_timeout());
    client_->connect(
        {wanted_.endpoint_host, wanted_.endpoint_port}, Clock::now() + kWatch, [](const std::string&) {},
        [this](const std::optional<Error>& failed) {
          if (failed || over_) return tell_next_member();
          client_->get(hub_key(plan_.run_id), [this](StoreOutcome, const std::optional<std::string>& hub) {
            endpoint_answered(hub.value_or(""));
          });
        });
  });
}

void ClusterNode::endpoint_answered(const std::string& hub) {
  const auto place = parse_hub(hub, wanted_.endpoint_host);
  if (!place || to_string(*place) == own_place()) return tell_next_member();
  if (host_->hub().is_smaller_part()) return move_to({.addr = place->host, .link_port = place->port});
  const bool hosts_there = hub.find(':') == std::string::npos;
  if (!hosts_there) return tell_next_member();
  // Of what others say about it, a new host believes its own store alone.
  client_->set(running_key(plan_.run_id), own_place());
  client_->get(running_key(plan_.run_id),
               [this, place = *place](StoreOutcome, const auto&) { claim_endpoint(place); });
}

// Members that have lost the coordinator before do not look for a successor behind them in the order of
// succession: they are told by it.
void ClusterNode::tell_next_member() {
  std::erase_if(to_tell_, [this](const StoreAddress& place) { return is_dead(place); });
  if (to_tell_.empty() || host_->hub().is_smaller_part()) return watch_endpoint();
  std::ranges::rotate(to_tell_, to_tell_.begin() + 1);
  claim_endpoint(to_tell_.back());
}

void ClusterNode::claim_endpoint(const StoreAddress& place) {
  connecting_ = std::make_shared<Connecting>(loop_);
  connecting_->start(place.host, place.port, connect_timeout(),
                     [this, place](std::optional<asio::ip::tcp::socket> socket, const std::string&) {
                       if (!socket) note_dead(place, connecting_->was_refused());
                       if (socket && host_ && !over_) return claim_from(place, std::move(*socket));
                       watch_endpoint();
                     });
}

// A host that leads a round does not yield: then the nodes of this one go there.
void ClusterNode::claim_from(const StoreAddress& place, asio::ip::tcp::socket socket) {
  claim_ = std::make_shared<Link>(std::move(socket), node_timeout());
  const auto lost = [this](const LinkLoss&) {
    if (host_ && !over_) watch_endpoint();
  };
  const auto answered = [this, place](const NodeMessage& message) {
    if (!std::holds_alternative<Full>(message) || !host_ || over_) return;
    move_to({.addr = place.host, .link_port = place.port});
  };
  claim_->hear([](const NodeMessage&) {}, lost);
  claim_->start();
  acc::launcher::introduce(
      claim_, secret_, {.run_id = plan_.run_id, .node = introduce(), .is_hub = true},
      [this, place, answered, lost](bool is_proven) {
        // Others are told until they come: they may not have noticed the loss yet.
        if (place == lost_hub_) std::erase(to_tell_, place);
        if (is_proven) claim_->hear(answered, lost);
      },
      lost);
}

// As a new host: in the place of the one that was lost.
void ClusterNode::claim_hub_key() {
  hub_key_->claim(own_place(), hub_place_, [this](const EtcdHubKey::Claimed& claimed) {
    if (over_ || !host_ || claimed.how == EtcdHubKey::Claimed::How::own) return;
    const auto place =
        claimed.how == EtcdHubKey::Claimed::How::held ? parse_hub(claimed.text, "") : std::nullopt;
    if (place && host_->hub().is_smaller_part())
      return move_to({.addr = place->host, .link_port = place->port});
    // The job runs here: a host that has begun another meanwhile sees that the key is not its own any more.
    if (place) hub_place_ = claimed.text;
    watch_endpoint();
  });
}

// This node was silent for so long that others went on without it.
void ClusterNode::hub_key_lost(const std::string& place) {
  const auto hub = parse_hub(place, "");
  if (!over_ && host_ && hub) move_to({.addr = hub->host, .link_port = hub->port});
}

// --- Looking for the job again

// The hub is lost, for this node at least.
void ClusterNode::seek_again(const LinkLoss& loss) {
  cut_off_ = true;
  lost_hub_ = parse_hub(hub_place_, "").value_or(StoreAddress{});
  hub_closed_ = loss.gone;
  dead_.clear();
  if (!wants_round_) join_deadline_ = Clock::now() + wanted_.join_timeout;
  seek();
}

// Asks in turn at each place where the job may be, until one answers; meanwhile others may ask here.
void ClusterNode::seek() {
  search_ = Search::again;
  if (may_inherit_hub()) return become_hub();
  to_seek_.clear();
  endpoint_asked_ = false;
  // A connection can be closed by what is between two machines.
  const bool hub_may_live = lost_hub_.port != 0 && !hub_is_dead();
  if (hub_closed_ && hub_may_live) to_seek_.push_back(lost_hub_);
  for (const NodeInfo& heir : heirs_) {
    if (wanted_.backend == RendezvousBackend::static_ || place_among({heir}, introduce())) break;
    if (!place_among(dead_, heir)) to_seek_.push_back(place_of(heir));
  }
  if (!hub_closed_ && hub_may_live) to_seek_.push_back(lost_hub_);
  seek_next();
}

void ClusterNode::seek_next() {
  if (to_seek_.empty()) return seek_at_endpoint();
  const StoreAddress place = to_seek_.front();
  to_seek_.erase(to_seek_.begin());
  try_place(place, [this] {
    if (may_inherit_hub()) return become_hub();
    seek_next();
  });
}

// Links to whoever answers there; a process that is stopped still accepts connections.
void ClusterNode::try_place(const StoreAddress& place, std::function<void()> failed) {
  const auto not_there = [this, place, failed = std::move(failed)](const std::string& why, bool refused) {
    last_try_ = to_string(place) + ": " + why;
    log::debug("rendezvous: no coordinator at {}", last_try_);
    note_dead(place, refused);
    failed();
  };
  connecting_ = std::make_shared<Connecting>(loop_);
  connecting_->start(
      place.host, place.port, connect_timeout(),
      [this, place, not_there](std::optional<asio::ip::tcp::socket> socket, const std::string& why) {
        if (!socket) return not_there(why, connecting_->was_refused());
        trial_ = std::make_shared<Link>(std::move(*socket), connect_timeout());
        trial_->hear([](const NodeMessage&) {},
                     [this, not_there](const LinkLoss& loss) {
                       trial_.reset();
                       not_there(loss.why, false);
                     });
        trial_->on_first_heard([this, place] {
          hub_place_ = to_string(place);
          sign({.addr = place.host, .link_port = place.port});
          attach(std::exchange(trial_, nullptr));
        });
        trial_->start();
      });
}

void ClusterNode::note_dead(const StoreAddress& place, bool refused) {
  if (place == lost_hub_ && (refused || hub_closed_) && !hub_is_dead()) dead_.push_back(hub_);
  for (const NodeInfo& heir : heirs_) {
    if (refused && place_of(heir) == place && !place_among(dead_, heir)) dead_.push_back(heir);
  }
}

bool ClusterNode::hub_is_dead() const {
  return place_among(dead_, hub_).has_value();
}

bool ClusterNode::is_dead(const StoreAddress& place) const {
  if (place == lost_hub_) return hub_is_dead();
  return std::ranges::any_of(dead_, [&](const NodeInfo& one) { return place == place_of(one); });
}

// Who hosts the job now is told there, once somebody does.
void ClusterNode::seek_at_endpoint() {
  endpoint_asked_ = true;
  if (hub_key_) {
    return hub_key_->find([this](const EtcdHubKey::Claimed& found) {
      if (over_ || link_ || host_) return;
      if (found.how == EtcdHubKey::Claimed::How::held) return told_of_hub(found.text);
      last_try_ = found.text;
      seek_later();
    });
  }
  client_ = std::make_unique<StoreClient>(loop_, connect_timeout());
  const auto failed = [this](const std::string& why) { last_try_ = endpoint() + ": " + why; };
  client_->connect({wanted_.endpoint_host, wanted_.endpoint_port}, Clock::now() + kWatch, failed,
                   [this](const std::optional<Error>& error) {
                     if (error) return seek_later();
                     client_->get(hub_key(plan_.run_id),
                                  [this](StoreOutcome, const std::optional<std::string>& hub) {
                                    if (hub) return told_of_hub(*hub);
                                    seek_later();
                                  });
                   });
}

void ClusterNode::told_of_hub(const std::string& text) {
  const auto place = parse_hub(text, wanted_.endpoint_host);
  if (!place || to_string(*place) == own_place()) return seek_later();
  try_place(*place, [this] { seek_later(); });
}

void ClusterNode::seek_later() {
  search_ = Search::again;
  watch_.expires_after(kWatch);
  watch_.async_wait([this](const error_code& error) {
    if (error || over_ || link_ || host_) return;
    // Whoever took the connection and closed it may do so each time: the other places come first.
    if (endpoint_asked_ || may_inherit_hub()) return seek();
    seek_next();
  });
}

void ClusterNode::stop_seeking() {
  watch_.cancel();
  if (connecting_) connecting_->cancel();
  if (trial_) std::exchange(trial_, nullptr)->close();
  if (claim_) std::exchange(claim_, nullptr)->close();
  client_.reset();
}

// The larger part of the last round's nodes is here or linked to this one, and none of them counts for
// another hub.
bool ClusterNode::may_inherit_hub() const {
  if (wanted_.backend == RendezvousBackend::static_ || !links_) return false;
  const auto counts = [this](const NodeHistory& one) {
    return counts_for(one, round_, links_->port(), hub_is_dead() ? lost_hub_.port : 0);
  };
  const auto reached = std::ranges::count_if(
      followers_, [&](const auto& one) { return one->link->is_open() && counts(one->hello.history); });
  return counts(history()) &&
         may_inherit(static_cast<int>(reached) + 1, nodes_, static_cast<int>(dead_.size()));
}

void ClusterNode::greeted(const std::shared_ptr<Follower>& follower) {
  if (leaving_) return follower->link->close();
  if (follower->hello.is_hub) return claimed(*follower);
  // What a node was part of is believed of those alone that can have been.
  if (round_ > 0 && !is_of_last_round(*follower)) follower->hello.history = {};
  if (host_) {
    std::erase(to_tell_, place_of(follower->hello.node));
    return has_place_for(*follower) ? host_->adopt(*follower) : turn_away(*follower);
  }
  std::erase_if(followers_, [](const auto& one) { return !one->link->is_open(); });
  if (!may_follow(*follower)) return follower->link->close();
  followers_.push_back(follower);
  if (search_ != Search::again) return redirect_followers_later();
  if (may_inherit_hub()) become_hub();
}

// They have lost the hub, and this node has not, or not yet.
void ClusterNode::redirect_followers_later() {
  redirect_.expires_after(kWatch);
  redirect_.async_wait([this](const error_code& error) {
    if (error || search_ == Search::again || host_) return;
    if (link_ && link_->silence() >= kWatch) return redirect_followers_later();
    redirect_followers();
  });
}

void ClusterNode::redirect_followers() {
  const auto hub = parse_hub(hub_place_, "");
  for (const auto& follower : std::exchange(followers_, {})) {
    if (hub) follower->link->send(Moved{hub->host, hub->port});
    follower->link->close();
  }
}

// That another node hosts the job is believed of a node of the last round alone, and before the first one,
// when this node may have come in the place of a host that was lost, of the one that its own store names, or
// that knows the secret. With etcd the key says it, and in a static job all nodes were told who hosts it.
void ClusterNode::claimed(const Follower& follower) {
  const NodeInfo& hub = follower.hello.node;
  const bool leads = host_ && !host_->hub().is_smaller_part();
  const bool is_heir = round_ > 0 && is_of_last_round(follower) && (!leads || place_among(heirs_, hub));
  const bool is_named =
      round_ == 0 && host_ && (follower.is_proven || host_->says_running_at(to_string(place_of(hub))));
  const bool yields =
      wanted_.backend != RendezvousBackend::static_ && (host_ || cut_off_) && (is_heir || is_named);
  if (!yields && leads && round_ > 0) follower.link->send(Full{});
  follower.link->close();
  if (yields) move_to(hub);
}

// Until all nodes have joined, a node may come from anywhere.
bool ClusterNode::has_place_for(const Follower& follower) const {
  const Hub& hub = host_->hub();
  if (hub.nodes() >= static_cast<std::size_t>(wanted_.most_nodes) + kMaxSurplus) return false;
  if (!hub.is_full() || follower.is_proven) return true;
  return comes_from(*follower.link, [&](const std::string& place) { return hub.is_place_of_node(place); });
}

// When the hub is lost, the others of the round link to its heirs.
bool ClusterNode::may_follow(const Follower& follower) const {
  return wanted_.backend != RendezvousBackend::static_ && place_among(heirs_, introduce()) &&
         followers_.size() < static_cast<std::size_t>(nodes_) + kMaxSurplus && is_of_last_round(follower);
}

bool ClusterNode::is_of_last_round(const Follower& follower) const {
  return places_.empty() || follower.is_proven ||
         comes_from(*follower.link, [this](const std::string& place) { return contains(places_, place); });
}

bool ClusterNode::comes_from(const Link& link,
                             const std::function<bool(const std::string&)>& is_place) const {
  const std::string peer = link.peer_address();
  const bool is_here = is_loopback(peer) || contains(own_.addresses, peer);
  return is_here ? link.is_own_users() : is_place(peer);
}

void ClusterNode::turn_away(const Follower& follower) {
  const std::optional<RoundOver> over = host_->hub().surplus();
  follower.link->send(over ? NodeMessage(RoundEnds{*over}) : NodeMessage(Full{}));
  follower.link->close();
}

void ClusterNode::wait_for_place() {
  if (link_) std::exchange(link_, nullptr)->close();
  last_try_ = "all places of the job are taken, by nodes of other addresses";
  if (!std::exchange(waits_for_place_, true)) tell(Notice{last_try_ + ": this node is a spare"});
  if (cut_off_) return seek_later();
  search_ = Search::host;
  dial_later();
}

void ClusterNode::become_hub() {
  log::debug(
      "rendezvous: succeeds the coordinator that was lost: {} of the {} nodes of round {} are here, {} have "
      "ended",
      followers_.size() + 1, nodes_, round_, dead_.size());
  stop_seeking();
  cut_off_ = false;
  asked_ = 0;
  to_tell_.clear();
  if (lost_hub_.port != 0) to_tell_.push_back(lost_hub_);
  for (const NodeInfo& heir : heirs_) {
    if (!place_among({heir}, introduce())) to_tell_.push_back(place_of(heir));
  }
  for (const auto& follower : followers_) std::erase(to_tell_, place_of(follower->hello.node));
  const bool counts = wanted_.least_nodes == wanted_.most_nodes;
  host_at_own_port({.rounds = round_,
                    .restarts = restarts_ + (counts ? 1 : 0),
                    .away = yet_to_come(heirs_, hub_, introduce(), nodes_, dead_),
                    .dead_port = hub_is_dead() ? lost_hub_.port : 0});
  if (over_) return;
  if (!hub_key_) return watch_endpoint();
  hub_place_ = to_string(lost_hub_);
  claim_hub_key();
}

// --- Waiting

void ClusterNode::give_up(const std::string& why, int code) {
  if (std::exchange(over_, true)) return;
  reminder_.cancel();
  tell(RoundOver{.text = why, .exit_code = code});
}

void ClusterNode::wait_for_round() {
  reminder_.expires_at(std::min(Clock::now() + kReminder, join_deadline_));
  reminder_.async_wait([this](const error_code& error) {
    if (!error && wants_round_ && !over_) remind();
  });
}

void ClusterNode::remind() {
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(join_deadline_ - Clock::now());
  const bool late = Clock::now() >= join_deadline_;
  const std::string host = cut_off_    ? "the node that hosted the job was lost, and the job is looked for"
                           : is_etcd() ? "etcd at " + endpoint() + " is to say who hosts the job"
                                       : endpoint() + " is to host the job";
  const std::string text = host_ ? host_->hub().missing()
                                 : fmt::format("{}; last try: {}", host, link_ ? "it answered" : last_try_);
  if (late) {
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(wanted_.join_timeout);
    const std::string why =
        fmt::format("the nodes of the job did not meet within {} s: {}", waited.count(), text);
    if (host_) return host_->hub().give_up(why);
    return give_up(why, exit_code(ErrorKind::rendezvous));
  }
  const std::string waiting =
      fmt::format("waiting for the nodes of the job, {} s left: {}", left.count(), text);
  if (host_) host_->tell_waiting(waiting);
  if (host_ || !link_ || cut_off_) tell(Notice{waiting});
  wait_for_round();
}

NodeHistory ClusterNode::history() const {
  return {.round = round_, .restarts = restarts_, .asked = asked_};
}

int ClusterNode::port_of_hub() const {
  const auto place = parse_hub(hub_place_, "");
  return place ? place->port : 0;
}

NodeInfo ClusterNode::introduce() const {
  return {.host = own_.host_name,
          .addr = addr_,
          .pid = plan_.process == 0 ? static_cast<int>(::getpid()) : plan_.process,
          .node_rank = wanted_.node_rank,
          .role = plan_.role,
          .workers = plan_.nproc_per_node,
          .link_port = links_ ? links_->port() : std::uint16_t{0},
          .addresses = addresses_for_others(own_)};
}

std::string ClusterNode::own_place() const {
  return to_string(StoreAddress{addr_, links_->port()});
}

std::string ClusterNode::endpoint() const {
  return to_string(StoreAddress{wanted_.endpoint_host, wanted_.endpoint_port});
}

}  // namespace acc::launcher
