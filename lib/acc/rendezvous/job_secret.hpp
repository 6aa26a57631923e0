// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace acc::launcher {

struct RendezvousPlan;

/// What the nodes of a job know and nobody else. With it each side of a connection proves to the other that
/// it is one of them, and neither says what it is. Libsodium does the computing.
class JobSecret {
 public:
  /// Who proves: what one side has said is not a proof of the other.
  enum class Side { dialer, listener };
  /// Of one connection: what each side drew for it, and which job it is of.
  struct Challenge {
    std::string run_id = {};
    std::string of_dialer = {};
    std::string of_listener = {};
  };

  /// There is none.
  JobSecret() = default;
  /// Throws Error{config} for less than 16 bytes; `where` they come from is named.
  JobSecret(std::string_view text, const std::string& where);
  JobSecret(const JobSecret&) = default;
  JobSecret& operator=(const JobSecret&) = default;
  ~JobSecret();

  explicit operator bool() const { return exists_; }

  std::string proof(Side side, const Challenge& challenge) const;
  /// Whether `side` knows the secret, by its proof. Takes the same time for each wrong one.
  bool is_proof(std::string_view proof, Side side, const Challenge& challenge) const;

 private:
  std::array<unsigned char, 32> key_ = {};
  bool exists_ = false;
};

/// That of the plan's file or variable; none where it has neither. Throws Error for a file that cannot be
/// read, or what is too short.
JobSecret job_secret(const RendezvousPlan& plan);

/// Fresh for each connection: 32 random bytes, in letters.
std::string draw_nonce();

}  // namespace acc::launcher
