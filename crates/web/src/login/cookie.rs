//! The cookie of a device. Its name contains an id of the daemon, because browsers send cookies to
//! all ports of a host.

use axum::http::{HeaderMap, HeaderValue, header};

/// The longest time that browsers keep a cookie. A device that is not used expires earlier.
const MAX_AGE_SECONDS: u32 = 400 * 24 * 60 * 60;
/// Browsers accept a name with this prefix only with `Secure` and without `Domain`, so no other
/// host and no unencrypted page can set it.
const HOST_PREFIX: &str = "__Host-";

/// The cookie that a request presents.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DeviceCookie {
    Missing,
    /// Two different cookies, or one that cannot be read.
    Ambiguous,
    /// The id and the secret of a device.
    One(String, String),
}

impl DeviceCookie {
    /// Removes all cookies from a request and reads ours. Over TLS only the name that other hosts
    /// cannot set is accepted; without it a proxy may have terminated TLS.
    pub(crate) fn take(headers: &mut HeaderMap, cookie_id: &str, is_tls: bool) -> DeviceCookie {
        let names = [cookie_name(cookie_id, true), cookie_name(cookie_id, false)];
        let names = if is_tls { &names[..1] } else { &names[..] };
        let mut found = DeviceCookie::Missing;
        let values = headers.get_all(header::COOKIE).iter();
        for pair in values.flat_map(|it| it.to_str().unwrap_or_default().split(';')) {
            let Some((name, value)) = pair.trim().split_once('=') else { continue };
            if !names.iter().any(|it| it == name) {
                continue;
            }
            let next = match value.split_once('.') {
                Some((id, secret)) => DeviceCookie::One(id.to_owned(), secret.to_owned()),
                None => DeviceCookie::Ambiguous,
            };
            let is_consistent = found == DeviceCookie::Missing || found == next;
            found = if is_consistent { next } else { DeviceCookie::Ambiguous };
        }
        headers.remove(header::COOKIE);
        found
    }
}

/// The value of `Set-Cookie` after a login.
pub(crate) fn login_cookie(cookie_id: &str, id: &str, secret: &str, is_tls: bool) -> HeaderValue {
    let name = cookie_name(cookie_id, is_tls);
    cookie_header(&format!("{name}={id}.{secret}; Max-Age={MAX_AGE_SECONDS}"), is_tls)
}

/// The values of `Set-Cookie` after a logout.
pub(crate) fn expired_cookies(cookie_id: &str) -> [HeaderValue; 2] {
    [true, false].map(|is_tls| {
        cookie_header(&format!("{}=; Max-Age=0", cookie_name(cookie_id, is_tls)), is_tls)
    })
}

fn cookie_name(cookie_id: &str, is_tls: bool) -> String {
    format!("{}jackfield-{cookie_id}", if is_tls { HOST_PREFIX } else { "" })
}

fn cookie_header(cookie: &str, is_tls: bool) -> HeaderValue {
    let secure = if is_tls { "; Secure" } else { "" };
    let text = format!("{cookie}; Path=/; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::try_from(text).expect("ids and secrets are printable")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(cookies: &[&str], is_tls: bool) -> DeviceCookie {
        let values = cookies.iter().map(|it| (header::COOKIE, it.parse().unwrap()));
        let mut headers: HeaderMap = values.collect();
        let taken = DeviceCookie::take(&mut headers, "7f", is_tls);
        assert!(headers.is_empty(), "no route sees a cookie");
        taken
    }

    #[test]
    fn cookie_of_this_daemon_is_found_among_others() {
        let one = || DeviceCookie::One("d-1".into(), "x".into());
        assert_eq!(take(&["a=b; jackfield-7f=d-1.x; jackfield-8=d-2.y"], false), one());
        assert_eq!(take(&["a=b", "__Host-jackfield-7f=d-1.x"], false), one());
        assert_eq!(take(&["__Host-jackfield-7f=d-1.x"], true), one());
        assert_eq!(take(&["jackfield-7f=d-1.x; jackfield-7f=d-1.x"], false), one());
        for none in ["", "a=b", "jackfield-7=d-1.x", "xjackfield-7f=d-1.x", "JACKFIELD-7F=d-1.x"] {
            assert_eq!(take(&[none], false), DeviceCookie::Missing, "{none}");
        }
        assert_eq!(take(&["jackfield-7f=d-1.x"], true), DeviceCookie::Missing);
        for bad in ["jackfield-7f=d-1.x; jackfield-7f=d-2.y", "jackfield-7f=", "jackfield-7f=d-1"] {
            assert_eq!(take(&[bad], false), DeviceCookie::Ambiguous, "{bad}");
        }
    }

    #[test]
    fn cookie_is_unreadable_for_scripts_and_not_sent_by_other_sites() {
        let plain = login_cookie("7f", "d-1", "x", false);
        let expected = "jackfield-7f=d-1.x; Max-Age=34560000; Path=/; HttpOnly; SameSite=Strict";
        assert_eq!(plain, expected);
        assert_eq!(
            login_cookie("7f", "d-1", "x", true).to_str().unwrap(),
            format!("__Host-{expected}; Secure")
        );
        assert_eq!(
            expired_cookies("7f")[1],
            "jackfield-7f=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict"
        );
    }
}
