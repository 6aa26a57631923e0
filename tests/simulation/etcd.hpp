// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace simulation {

/// An etcd on a machine of its own. What is written outlives its process. Leases live by its clock, and begin
/// anew when it is started again.
class Etcd {
 public:
  static constexpr std::uint16_t kPort = 2379;

  explicit Etcd(int machine);
  ~Etcd();
  Etcd(const Etcd&) = delete;
  Etcd& operator=(const Etcd&) = delete;

  void start();
  void kill();
  void pause(bool pauses);
  /// Requests take up to some seconds, before they are applied or after; calls count.
  void slow_down(bool slows);
  /// Answers with errors that pass by themselves, also to requests that it has applied; calls count.
  void fail(bool fails);
  /// Its clock is set ahead: all leases expire.
  void expire_leases();

  /// Whether it answers as it should.
  bool is_well() const;

 private:
  class Server;
  struct State;

  int machine_;
  std::unique_ptr<State> state_;
  std::unique_ptr<Server> server_;
};

/// A message is a path or a status, a line end, a body, and this: one that lacks it was cut.
inline constexpr char kEndOfMessage = '\n';

/// Of a process: requests to etcd that it has not had an answer to.
struct EtcdRequests {
  std::size_t pending = 0;
};

}  // namespace simulation
