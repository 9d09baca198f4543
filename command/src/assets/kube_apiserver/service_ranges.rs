//! Reads `--service-cluster-ip-range`.

use std::net::IpAddr;

use harness::server::ServiceRange;

use crate::Failure;
use crate::serve::service_account_flags;

/// The maximum number of host bits in an IPv6 range that kube-apiserver's allocator supports.
///
/// Source: kubernetes pkg/registry/core/service/ipallocator/ipallocator.go, `NewIPAllocator`.
const MAX_HOST_BITS: u32 = 64;

/// Returns the address range of Services, and the range of the other IP family if there are two.
///
/// `published` is the address of the endpoints of the Service `kubernetes`, if the server publishes them.
///
/// # Errors
/// Returns kube-apiserver's error for invalid ranges. Also returns an error for ranges that kube-apiserver accepts at
/// startup but cannot allocate addresses from.
///
/// Source: kubernetes cmd/kube-apiserver/app/options/completion.go, `getServiceIPAndRanges`, and validation.go,
/// `validateClusterIPFlags` and `validatePublicIPServiceClusterIPRangeIPFamilies`.
pub(super) fn parse(
    flag: &str,
    published: Option<IpAddr>,
) -> Result<(ServiceRange, Option<ServiceRange>), Failure> {
    let ranges: Vec<&str> = flag.split(',').filter(|_| !flag.is_empty()).collect();
    let primary = match ranges.first() {
        None => ServiceRange::default(),
        Some(range) => ServiceRange::parse(range)
            .ok_or_else(|| Failure::usage("service-cluster-ip-range[0] is not a valid cidr"))?,
    };
    if !primary.has_eight_addresses() {
        return Err(Failure::usage(
            "error determining service IP ranges for primary service cidr: the service cluster IP range must be at least 8 \
             IP addresses",
        ));
    }
    let secondary = match ranges.get(1) {
        None => None,
        Some(range) => Some(
            ServiceRange::parse(range)
                .ok_or_else(|| Failure::usage("service-cluster-ip-range[1] is not an ip net"))?,
        ),
    };
    let mut errors = Vec::new();
    if ranges.len() > 2 {
        errors.push("--service-cluster-ip-range must not contain more than two entries".to_owned());
    }
    if secondary.is_some_and(|range| range.is_ipv4() == primary.is_ipv4()) {
        let why =
            "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family";
        errors.push(why.to_owned());
    }
    if let Some(address) = published.filter(|address| address.is_ipv4() != primary.is_ipv4()) {
        errors
            .push(format!("service IP family \"{primary}\" must match public address family \"{address}\""));
    }
    service_account_flags::refuse(&errors)?;
    for range in [Some(primary), secondary].into_iter().flatten() {
        if range.host_bits() > MAX_HOST_BITS || !range.has_eight_addresses() {
            return Err(Failure::unsupported(format!(
                "--service-cluster-ip-range={range}: kube-apiserver cannot allocate addresses from this range"
            )));
        }
    }
    Ok((primary, secondary))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExitCode;

    fn parsed(flag: &str, published: Option<IpAddr>) -> Result<String, (ExitCode, String)> {
        match parse(flag, published) {
            Ok((primary, secondary)) => {
                let secondary = secondary.map(|range| format!(",{range}")).unwrap_or_default();
                Ok(format!("{primary}{secondary}"))
            }
            Err(failure) => Err((failure.code, failure.to_string())),
        }
    }

    #[test]
    fn ranges_of_both_families_are_accepted() {
        for (flag, expected) in [
            ("", "10.0.0.0/24"),
            ("10.96.0.1/12", "10.96.0.0/12"),
            ("010.0.0.0/24", "10.0.0.0/24"),
            ("10.0.0.0/2", "0.0.0.0/2"),
            ("fd00::/64", "fd00::/64"),
            ("fd00::/108,10.1.0.0/16", "fd00::/108,10.1.0.0/16"),
            ("10.1.0.0/16,fd00::/112", "10.1.0.0/16,fd00::/112"),
        ] {
            assert_eq!(parsed(flag, None).as_deref(), Ok(expected), "{flag}");
        }
    }

    /// Compares errors with the messages of kube-apiserver 1.37.1.
    #[test]
    fn invalid_ranges_have_the_errors_of_kube_apiserver() {
        const SIZE: &str = "error determining service IP ranges for primary service cidr: the service cluster IP range must be \
                            at least 8 IP addresses";
        let published = Some("192.0.2.1".parse().unwrap());
        for (flag, expected) in [
            ("foo", "service-cluster-ip-range[0] is not a valid cidr"),
            (",", "service-cluster-ip-range[0] is not a valid cidr"),
            ("10.0.0.0", "service-cluster-ip-range[0] is not a valid cidr"),
            ("10.0.0.0/33", "service-cluster-ip-range[0] is not a valid cidr"),
            ("10.0.0.0/24,foo", "service-cluster-ip-range[1] is not an ip net"),
            ("10.0.0.0/24, fd00::/112", "service-cluster-ip-range[1] is not an ip net"),
            ("0.0.0.0/0", SIZE),
            ("10.0.0.0/1", SIZE),
            ("::/0", SIZE),
            ("10.0.0.0/30", SIZE),
            ("fd00::/126", SIZE),
            (
                "10.0.0.0/24,10.1.0.0/24",
                "--service-cluster-ip-range[0] and --service-cluster-ip-range[1] must be of different IP family",
            ),
            (
                "10.0.0.0/24,fd00::/112,10.0.0.0/8",
                "--service-cluster-ip-range must not contain more than two entries",
            ),
            ("fd00::1/64", "service IP family \"fd00::/64\" must match public address family \"192.0.2.1\""),
        ] {
            assert_eq!(parsed(flag, published), Err((ExitCode::Usage, expected.to_owned())), "{flag}");
        }
    }

    #[test]
    fn unusable_ranges_are_not_supported() {
        for flag in ["fd00::/63", "10.0.0.0/24,fd00::/127", "10.0.0.0/24,::/0", "fd00::/112,10.0.0.0/32"] {
            assert_eq!(parsed(flag, None).map_err(|(code, _)| code), Err(ExitCode::Unsupported), "{flag}");
        }
    }
}
