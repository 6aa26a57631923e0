// SPDX-License-Identifier: Apache-2.0
#include "acc/plan/rendezvous.hpp"

#include <fmt/format.h>

#include <chrono>
#include <limits>

#include "acc/base/host_name.hpp"
#include "acc/base/text.hpp"
#include "acc/plan/flag_grammars.hpp"
#include "acc/plan/usage_error.hpp"

namespace acc::launcher {
namespace {

// The default ports of torchrun: of the static store, c10d and etcd.
constexpr std::uint16_t kMasterPort = 29500;
constexpr std::uint16_t kC10dPort = 29400;
constexpr std::uint16_t kEtcdPort = 2379;

RendezvousKind parse_backend(const Settings& settings) {
  const std::string name = settings[key::rdzv_backend];
  const std::string& where = settings.origin(key::rdzv_backend);
  if (name == "static") return RendezvousKind::static_;
  if (name == "c10d") return RendezvousKind::c10d;
  if (name == "etcd") return RendezvousKind::etcd;
  if (name == "etcd-v2") fail(where, "etcd-v2 uses an API that etcd no longer has", "use etcd, or c10d");
  const std::string meant = did_you_mean(name, {"static", "c10d", "etcd"});
  fail(where, "'" + name + "' is not a rendezvous back end",
       "static, c10d or etcd" + (meant.empty() ? "" : "; " + meant));
}

std::string endpoint_text(const Settings& settings) {
  return std::string(trim(settings[key::rdzv_endpoint]));
}

std::optional<Endpoint> endpoint_given(const Settings& settings) {
  const std::string text = endpoint_text(settings);
  if (text.empty()) return std::nullopt;
  return parse_endpoint(text, settings.origin(key::rdzv_endpoint));
}

// torchrun's static rendezvous does not use the address, so that a malformed one does no harm.
std::string local_address(const Settings& settings, bool is_static, std::vector<std::string>& notes) {
  const std::string text(trim(settings[key::local_addr]));
  if (text.empty()) return {};
  const std::string& where = settings.origin(key::local_addr);
  if (!is_static) return parse_host(text, where, "without a port");
  const auto host = parse_host_name(text);
  if (!host)
    notes.push_back(fmt::format("{}: '{}' is not an address, and has no effect", where, shorten(text)));
  return host.value_or("");
}

std::optional<std::uint16_t> master_port(const Settings& settings) {
  const auto port = settings[key::main_process_port];
  if (!port) return std::nullopt;
  if (*port < 0 || *port > 65535) {
    fail(settings.origin(key::main_process_port), fmt::format("{} is not a port", *port),
         "0 to 65535; 0 is a free one");
  }
  return static_cast<std::uint16_t>(*port);
}

std::optional<std::chrono::milliseconds> node_timeout(const Settings& settings) {
  const auto seconds = settings[key::node_timeout];
  if (!seconds) return std::nullopt;
  if (!(*seconds > 0) || *seconds > 1e9)
    fail(settings.origin(key::node_timeout),
         fmt::format("{:g} is not a positive number of seconds", *seconds));
  return to_milliseconds(*seconds);
}

void set_spares(const Settings& settings, RendezvousPlan& rendezvous) {
  const auto spares = settings[key::spares];
  if (!spares) return;
  if (*spares < 0 || *spares > std::numeric_limits<int>::max())
    fail(settings.origin(key::spares), fmt::format("{} is not a number of nodes", *spares));
  rendezvous.spares = static_cast<int>(*spares);
}

void set_secret(const Settings& settings, const LaunchInputs& inputs, LaunchPlan& plan) {
  RendezvousPlan& rendezvous = plan.rendezvous;
  rendezvous.secret = inputs.environment.find(kSecretVariable);
  if (rendezvous.secret_file.empty()) return;
  if (rendezvous.secret) {
    fail(settings.origin(key::rdzv_conf),
         fmt::format("secret_file and {} both name a secret", kSecretVariable), "give one of them");
  }
  rendezvous.secret_file = (inputs.folder / rendezvous.secret_file).lexically_normal();
  if (rendezvous.store_file) {
    plan.notes.push_back(
        settings.origin(key::rdzv_conf) +
        ": secret_file has no effect with store_type=file: nodes do not connect to each other");
  }
}

// The store of a job on one machine.
void plan_one_machine(const Settings& settings, const LaunchInputs& inputs, LaunchPlan& plan) {
  const bool is_static = plan.rendezvous.backend == RendezvousKind::static_;
  const bool binding = is_static && plan.dialect == Dialect::torchrun;
  plan.master_port = master_port(settings).value_or(0);
  if (plan.rendezvous.store_file) return;
  const auto endpoint = endpoint_given(settings);
  if (endpoint && plan.rendezvous.backend == RendezvousKind::c10d) {
    plan.rendezvous.endpoint_host = endpoint->host;
    plan.rendezvous.endpoint_port = endpoint->port.value_or(kC10dPort);
  }
  std::optional<NamedAddress> address;
  if (endpoint && is_static) {
    address = {.host = endpoint->host, .origin = settings.origin(key::rdzv_endpoint)};
    plan.master_port = *endpoint->port;
  } else if (settings.given(key::main_process_ip)) {
    const std::string text = settings[key::main_process_ip];
    address = {.host = binding ? main_process_host(settings, plan.dialect)
                               : parse_host_name(trim(text)).value_or(text),
               .origin = settings.origin(key::main_process_ip)};
  }
  // A process without a rank has no store.
  if (!address || !plan.sets_ranks) return;
  address->binding = binding;
  plan_master_address(*address, inputs, plan);
}

Endpoint where_nodes_meet(const Settings& settings, const LaunchPlan& plan) {
  const bool is_etcd = plan.rendezvous.backend == RendezvousKind::etcd;
  if (const auto endpoint = endpoint_given(settings)) {
    return {endpoint->host, endpoint->port.value_or(is_etcd ? kEtcdPort : kC10dPort)};
  }
  if (is_etcd) return {"localhost", kEtcdPort};
  const auto port = master_port(settings);
  if (settings.given(key::main_process_ip))
    return {main_process_host(settings, plan.dialect), port.value_or(kMasterPort)};
  if (plan.dialect == Dialect::launch) {
    fail(settings.origin(key::num_machines),
         fmt::format("{} machines need the address of machine 0", plan.num_machines),
         "--main_process_ip, and --main_process_port");
  }
  if (plan.rendezvous.backend == RendezvousKind::c10d) return {"localhost", kC10dPort};
  return {"127.0.0.1", port.value_or(kMasterPort)};
}

void plan_machines(const Settings& settings, LaunchPlan& plan) {
  if (plan.run_id.empty())
    fail(settings.origin(key::rdzv_id), "the run needs an id, the same on all machines",
         "as in --rdzv-id job7");
  if (plan.rendezvous.store_file) return;
  // Messages of nodes are JSON.
  if (!is_utf8(plan.run_id))
    fail(settings.origin(key::rdzv_id), "the id of a run of several machines must be UTF-8",
         "as in --rdzv-id job7");
  const Endpoint endpoint = where_nodes_meet(settings, plan);
  const bool by_endpoint = !endpoint_text(settings).empty();
  if (endpoint.port == 0) {
    fail(settings.origin(by_endpoint ? SettingId(key::rdzv_endpoint) : SettingId(key::main_process_port)),
         "several machines cannot meet at port 0", "a port that all of them know");
  }
  plan.rendezvous.endpoint_host = endpoint.host;
  plan.rendezvous.endpoint_port = *endpoint.port;
  plan.master_addr = endpoint.host;
  // With the other back ends node 0 chooses the port of the workers' store in each round.
  if (plan.rendezvous.backend == RendezvousKind::static_) plan.master_port = *endpoint.port;
}

// As in torchrun the endpoint of a FileStore is its path. Without it the file is temporary, which works for
// one node only.
void plan_file(const Settings& settings, const LaunchInputs& inputs, LaunchPlan& plan) {
  RendezvousPlan& rendezvous = plan.rendezvous;
  const std::string& where = settings.origin(key::rdzv_conf);
  if (rendezvous.agents != TorchAgents::v2_6)
    fail(where, "agents of torch 2.4 and 2.5 meet in a TCP store only", "store_type=tcp");
  if (rendezvous.is_host) plan.notes.push_back(where + ": is_host has no effect with store_type=file");
  const std::string path = endpoint_text(settings);
  if (!path.empty()) {
    rendezvous.store_file = (inputs.folder / path).lexically_normal();
  } else if (plan.num_machines == 1) {
    rendezvous.store_file.reset();
  } else {
    fail(where, "store_type=file needs a file that all machines see", "as in --rdzv-endpoint /shared/job7");
  }
}

}  // namespace

std::string main_process_host(const Settings& settings, Dialect dialect) {
  return parse_host(
      settings[key::main_process_ip], settings.origin(key::main_process_ip),
      dialect == Dialect::torchrun ? "the port is --master-port" : "the port is --main_process_port");
}

void plan_rendezvous(const Settings& settings, const JobShape& shape, const LaunchInputs& inputs,
                     LaunchPlan& plan) {
  RendezvousPlan& rendezvous = plan.rendezvous;
  // torchrun reads this variable for c10d only, which --standalone implies.
  const bool is_c10d = settings[key::standalone] || settings[key::rdzv_backend] == "c10d";
  plan.use_agent_store = !is_c10d || plan.inherited.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE") != "1";
  if (settings[key::standalone]) {
    if (plan.num_machines > 1) {
      fail("", fmt::format("--standalone is for one machine, but {} is {}",
                           settings.origin(key::num_machines), plan.num_machines));
    }
    plan.run_id = inputs.random_id;
    return;
  }
  plan.run_id = settings[key::rdzv_id];
  rendezvous.backend = parse_backend(settings);
  const bool is_static = rendezvous.backend == RendezvousKind::static_;
  if (is_static || rendezvous.backend == RendezvousKind::etcd)
    rendezvous.join_timeout = std::chrono::seconds(900);
  apply_rdzv_conf(settings[key::rdzv_conf], settings.origin(key::rdzv_conf), rendezvous, plan.notes);
  if (rendezvous.store_file) {
    plan_file(settings, inputs, plan);
  } else if (const auto endpoint = endpoint_given(settings); endpoint && !endpoint->port && is_static) {
    fail(settings.origin(key::rdzv_endpoint), "the port is missing in endpoint '" + endpoint->host + "'",
         "the static rendezvous needs one, as in " + endpoint->host + ":29500");
  }
  set_secret(settings, inputs, plan);
  rendezvous.local_addr = local_address(settings, is_static, plan.notes);
  rendezvous.node_rank = plan.machine_rank;
  rendezvous.node_timeout = node_timeout(settings);
  set_spares(settings, rendezvous);
  rendezvous.min_nodes = is_static ? shape.num_machines : shape.min_machines;
  rendezvous.max_nodes = shape.num_machines;
  if (rendezvous.min_nodes != shape.min_machines) {
    plan.notes.push_back(fmt::format("{}: the static rendezvous waits for all {} machines; c10d takes fewer",
                                     settings.origin(key::num_machines), shape.num_machines));
  }
  if (!is_static && settings.is_explicit(key::machine_rank) && plan.machine_rank != 0) {
    plan.notes.push_back(fmt::format("{} has no effect: with {} the nodes agree on their ranks",
                                     settings.origin(key::machine_rank), settings[key::rdzv_backend]));
  }
  if (rendezvous.max_nodes > 1) return plan_machines(settings, plan);
  plan_one_machine(settings, inputs, plan);
  // As in torchrun 2.15, a job that nothing else can join has an id of its own.
  const bool names_meeting = settings.given(key::rdzv_id) || settings.given(key::rdzv_endpoint) ||
                             settings.given(key::main_process_port);
  if (plan.run_id.empty() || (is_static && !names_meeting)) plan.run_id = inputs.random_id;
}

namespace {

constexpr const char* kLoopback = "127.0.0.1";

std::string mismatch_text(const std::string& host, const HostLookup& lookup) {
  if (lookup.addresses.empty()) return fmt::format("'{}' cannot be resolved: {}", host, lookup.error);
  const std::string addresses = join(lookup.addresses, ", ");
  if (addresses == host) return fmt::format("'{}' is not an address of this machine", host);
  return fmt::format("'{}' is {}, which is not an address of this machine", host, addresses);
}

}  // namespace

void plan_master_address(const NamedAddress& address, const LaunchInputs& inputs, LaunchPlan& plan) {
  plan.master_addr = address.host;
  const HostLookup lookup = inputs.look_up(address.host);
  const OwnNames names = inputs.own_names();
  plan.store_addresses = own_among(lookup.addresses, names);
  if (!plan.store_addresses.empty()) return;
  plan.store_addresses = {kLoopback};
  // localhost does not resolve on a machine without /etc/hosts.
  if (address.host == "localhost") return;
  const std::string what = mismatch_text(address.host, lookup);
  if (address.binding) {
    plan.problems.push_back(
        {.what = what,
         .where = address.origin,
         .hint = fmt::format(
             "a job of one machine needs none; this machine has {}; for several machines use --nnodes",
             join(addresses_for_others(names), ", "))});
    return;
  }
  plan.master_addr = kLoopback;
  plan.notes.push_back(fmt::format("{}: {}: a job of one machine uses {}", address.origin, what, kLoopback));
}

}  // namespace acc::launcher
