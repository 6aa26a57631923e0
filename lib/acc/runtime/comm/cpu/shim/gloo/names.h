// SPDX-License-Identifier: Apache-2.0
// Declarations of Gloo's types that torch's ProcessGroupGloo.hpp uses. LibTorch contains Gloo's code and that
// header, but not Gloo's own headers. Objects of these types are created, used and destroyed inside
// libtorch_cpu.so only; acc just passes pointers on, so their real layout is not needed here.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

namespace rendezvous {
class Store {
 public:
  virtual ~Store();
  virtual void set(const std::string& key, const std::vector<char>& value) = 0;
  virtual std::vector<char> get(const std::string& key) = 0;
  virtual void wait(const std::vector<std::string>& keys) = 0;
  virtual void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) = 0;
};
}  // namespace rendezvous

namespace transport {
class Device {
 public:
  virtual ~Device();
};

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};
}  // namespace transport

}  // namespace gloo
