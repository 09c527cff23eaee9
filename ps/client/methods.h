#ifndef PS_CLIENT_METHODS_H_
#define PS_CLIENT_METHODS_H_

#include "absl/strings/string_view.h"

// The names of a parameter server's methods on the wire.
namespace muster {

inline constexpr absl::string_view kDescribeMethod =
    "/muster.ParameterServer/Describe";
inline constexpr absl::string_view kCreateMethod =
    "/muster.ParameterServer/Create";
inline constexpr absl::string_view kSetOptimizerMethod =
    "/muster.ParameterServer/SetOptimizer";
inline constexpr absl::string_view kAssignAveragesMethod =
    "/muster.ParameterServer/AssignAverages";
inline constexpr absl::string_view kExchangeMethod =
    "/muster.ParameterServer/Exchange";
inline constexpr absl::string_view kWatchMethod =
    "/muster.ParameterServer/Watch";
inline constexpr absl::string_view kShareMethod =
    "/muster.ParameterServer/Share";
inline constexpr absl::string_view kFreezeMethod =
    "/muster.ParameterServer/Freeze";
inline constexpr absl::string_view kSaveMethod = "/muster.ParameterServer/Save";
inline constexpr absl::string_view kRestoreMethod =
    "/muster.ParameterServer/Restore";
inline constexpr absl::string_view kRollBackMethod =
    "/muster.ParameterServer/RollBack";
inline constexpr absl::string_view kKeepCopyMethod =
    "/muster.ParameterServer/KeepCopy";
inline constexpr absl::string_view kTakeOverMethod =
    "/muster.ParameterServer/TakeOver";
inline constexpr absl::string_view kCopyMethod = "/muster.ParameterServer/Copy";

}  // namespace muster

#endif  // PS_CLIENT_METHODS_H_
