// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The fields of an error file (WorkerEnv::error_file), which are torchelastic's:
/// `{"message": {"message": "...", "extraInfo": {"timestamp": "..."}, "errorCode": 1}}`. Those of libacc's
/// own are in `extraInfo`, too.
namespace acc::error_field {

inline constexpr const char* kMessage = "message";
inline constexpr const char* kExtraInfo = "extraInfo";
/// In whole seconds, as text.
inline constexpr const char* kTimestamp = "timestamp";
inline constexpr const char* kCallstack = "py_callstack";
/// The launcher adds it when it copies the file.
inline constexpr const char* kErrorCode = "errorCode";

/// libacc's: the timestamp in microseconds, as text.
inline constexpr const char* kTimestampUs = "timestamp_us";
/// libacc's: whether the failure follows from that of another worker.
inline constexpr const char* kConsequence = "consequence";
/// libacc's: the ranks that a consequence is about.
inline constexpr const char* kLostRanks = "lost_ranks";

}  // namespace acc::error_field
