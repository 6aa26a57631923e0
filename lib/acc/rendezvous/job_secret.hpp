// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace acc::launcher {

struct RendezvousPlan;

/// The secret that the nodes of a job share. Each side of a connection proves to the other that it knows it,
/// without sending it: with message authentication codes, by libsodium.
class JobSecret {
 public:
  /// The side that proves; the proof of one is not valid for the other.
  enum class Side { dialer, listener };
  /// The job and the nonces of both sides of one connection.
  struct Challenge {
    std::string run_id = {};
    std::string dialer_nonce = {};
    std::string listener_nonce = {};
  };

  /// No secret.
  JobSecret() = default;
  /// Throws Error{config}, naming `origin`, for less than 16 bytes.
  JobSecret(std::string_view text, const std::string& origin);
  JobSecret(const JobSecret&) = default;
  JobSecret& operator=(const JobSecret&) = default;
  ~JobSecret();

  explicit operator bool() const { return exists_; }

  std::string proof(Side side, const Challenge& challenge) const;
  /// Whether `proof` is that of `side`. Compares in constant time.
  bool is_proof(std::string_view proof, Side side, const Challenge& challenge) const;

 private:
  std::array<unsigned char, 32> key_ = {};
  bool exists_ = false;
};

/// The secret from the plan's file or variable, if it has one. Throws Error for a file that cannot be read,
/// or a secret that is too short.
JobSecret job_secret(const RendezvousPlan& plan);

/// 32 random bytes, in hexadecimal; new for each connection.
std::string draw_nonce();

}  // namespace acc::launcher
