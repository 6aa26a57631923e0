// SPDX-License-Identifier: Apache-2.0
// The variables of engines and launchers, as lines NAME=value: they say which rank this process has, or are
// refused. A rank is below the number of ranks.
#include "acc/base/engine.hpp"
#include "acc/base/text.hpp"
#include "acc/base/worker_env.hpp"
#include "fuzz/promise.hpp"

namespace {

acc::Environment environment_in(std::string_view text) {
  acc::Environment environment;
  for (const std::string& line : acc::split(text, '\n')) {
    const std::size_t equals = line.find('=');
    // The kernel ends a variable at the first zero.
    if (equals != std::string::npos && equals > 0 && line.find('\0') == std::string::npos)
      environment.set(line.substr(0, equals), line.substr(equals + 1));
  }
  return environment;
}

void check(const acc::Engine& engine) {
  const auto is_below = [](const auto& rank, const auto& size) {
    return !rank || (rank->value >= 0 && (!size || rank->value < size->value));
  };
  fuzz::require(is_below(engine.rank, engine.size), "a rank is below the size", full_name(engine));
  fuzz::require(is_below(engine.local_rank, engine.local_size), "a local rank is below the size",
                full_name(engine));
  fuzz::require(is_below(engine.node_rank, engine.num_nodes), "a node is one of the nodes",
                full_name(engine));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const acc::Environment environment = environment_in(fuzz::text_of(data, size));
  for (const char* choice : {"auto", "slurm", "mpi", "k8s", "none"}) {
    const auto engine = fuzz::value_or_error([&] { return acc::find_engine(environment, choice); });
    if (engine && engine->problem) fuzz::require_clear({acc::ErrorKind::usage, {*engine->problem}});
    if (engine && !engine->problem) check(*engine);
  }
  acc::other_nodes(environment);
  fuzz::value_or_error([&] { return acc::slurm_groups(environment); });
  acc::engine_name(environment);
  acc::sees_one_device(environment);
  acc::first_pod(environment.get("HOSTNAME"));
  fuzz::value_or_error([&] { return acc::engine_stop(environment); });
  const auto worker = fuzz::value_or_error([&] { return acc::read_worker_env(environment); });
  if (worker) {
    fuzz::require(worker->rank >= 0 && worker->rank < worker->world_size, "a worker is one of the workers");
    fuzz::require(read_worker_env(to_environment(*worker)) == *worker,
                  "a worker's ranks survive its environment");
  }
  return 0;
}
