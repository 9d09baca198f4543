//! Issues certificates with a defect.

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};

use crate::authority::{DAY, authority, leaf, now};
use crate::rsa_authority::{Digest, RsaKey};
use crate::{CertificateAuthority, Defect, Error, Leaf, Name};

impl CertificateAuthority {
    /// Issues a server certificate for `names` that is valid except for `defect`.
    ///
    /// # Errors
    /// Returns an error if `names` is empty, if none of the names can have the defect, or if the key cannot be created.
    pub fn issue_with(&self, names: &[Name], defect: Defect) -> Result<Leaf, Error> {
        let (mut params, key) = leaf(names)?;
        match defect {
            Defect::Expired => {
                params.not_before = now() - 366 * DAY;
                params.not_after = now() - DAY;
            }
            Defect::NotYetValid => params.not_before = now() + DAY,
            Defect::WrongName => {
                params.subject_alt_names = vec![SanType::DnsName("wrong-name.invalid".try_into()?)];
            }
            Defect::ClusterLocalName => {
                params.subject_alt_names =
                    dns_names(names, defect, |name| Some(format!("{name}.cluster.local")))?;
            }
            Defect::WildcardName => {
                params.subject_alt_names = dns_names(names, defect, wildcard)?;
            }
            Defect::CommonNameOnly => params.subject_alt_names.clear(),
            Defect::NoAddress => {
                params.subject_alt_names = dns_names(names, defect, |name| Some(name.to_owned()))?;
            }
            Defect::NoServerAuth => params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
            Defect::NoUsage => params.extended_key_usages.clear(),
            Defect::UnknownIssuer => {
                let stranger = Self::new("an untrusted authority")?;
                return self.signed_by(&stranger, &params, &key);
            }
            Defect::RekeyedIssuer => {
                // The same subject with another key.
                let namesake = Self::new(self.common_name())?;
                return self.signed_by(&namesake, &params, &key);
            }
            Defect::MissingIntermediate => {
                let (_, leaf) = below_an_intermediate(&params, &key)?;
                return Ok(leaf);
            }
            Defect::Intermediate => {
                let (intermediate_pem, leaf) = below_an_intermediate(&params, &key)?;
                return Ok(Leaf { certificate_pem: leaf.certificate_pem + &intermediate_pem, ..leaf });
            }
            Defect::ExpiredIssuer => {
                let mut expired = authority("an expired authority");
                expired.not_before = now() - 366 * DAY;
                expired.not_after = now() - DAY;
                return Self::with_params("an expired authority", expired)?.signed(&params, &key);
            }
            Defect::Sha1 => return rsa_signed(2048, Digest::Sha1, &params, &key),
            Defect::Rsa1024 => return rsa_signed(1024, Digest::Sha256, &params, &key),
            Defect::OwnBundle => {
                let leaf = self.signed(&params, &key)?;
                return Ok(Leaf { ca_bundle_pem: leaf.certificate_pem.clone(), ..leaf });
            }
            Defect::BothBundles => {
                let old = Self::new("the authority before this one")?;
                let leaf = self.signed(&params, &key)?;
                let bundle = format!("{}{}", old.certificate_pem(), leaf.ca_bundle_pem);
                return Ok(Leaf { ca_bundle_pem: bundle, ..leaf });
            }
        }
        self.signed(&params, &key)
    }

    fn signed(&self, params: &CertificateParams, key: &KeyPair) -> Result<Leaf, Error> {
        self.signed_by(self, params, key)
    }

    /// Issues a leaf certificate that `signer` signs, and puts this certificate authority in the `caBundle`.
    fn signed_by(&self, signer: &Self, params: &CertificateParams, key: &KeyPair) -> Result<Leaf, Error> {
        let certificate = params.signed_by(key, signer.issuer())?;
        Ok(Leaf::new(certificate.pem(), key, self.certificate_pem().to_owned()))
    }
}

/// Issues a leaf certificate from a new intermediate CA. Returns the intermediate certificate and the leaf.
fn below_an_intermediate(params: &CertificateParams, key: &KeyPair) -> Result<(String, Leaf), Error> {
    let mut root = authority("an authority above another");
    root.is_ca = IsCa::Ca(BasicConstraints::Constrained(1));
    let root = CertificateAuthority::with_params("an authority above another", root)?;
    let intermediate = authority("an authority below another");
    let intermediate_key = KeyPair::generate()?;
    let pem = intermediate.signed_by(&intermediate_key, root.issuer())?.pem();
    let issuer = Issuer::new(intermediate, intermediate_key);
    let certificate = params.signed_by(key, &issuer)?;
    Ok((pem, Leaf::new(certificate.pem(), key, root.certificate_pem().to_owned())))
}

/// Issues a leaf certificate from a new CA with an RSA key, and puts the certificate of this CA in the `caBundle`.
fn rsa_signed(bits: usize, digest: Digest, params: &CertificateParams, key: &KeyPair) -> Result<Leaf, Error> {
    let rsa = RsaKey::generate(bits, digest)?;
    let (bundle, issuer) = rsa.authority(authority("an authority with an RSA key"))?;
    Ok(Leaf::new(RsaKey::sign(&issuer, digest, params, key)?, key, bundle))
}

/// Applies `change` to the DNS names. Omits IP addresses, and names for which `change` returns `None`.
fn dns_names(
    names: &[Name],
    defect: Defect,
    change: impl Fn(&str) -> Option<String>,
) -> Result<Vec<SanType>, Error> {
    let changed = names.iter().filter_map(|name| match name {
        Name::Dns(name) => change(name.as_str()),
        Name::Ip(_) => None,
    });
    let changed: Vec<SanType> =
        changed.map(|name| name.as_str().try_into().map(SanType::DnsName)).collect::<Result<_, _>>()?;
    if changed.is_empty() {
        return Err(Error::NoSuchName(defect));
    }
    Ok(changed)
}

fn wildcard(name: &str) -> Option<String> {
    name.split_once('.').map(|(_, domain)| format!("*.{domain}"))
}
