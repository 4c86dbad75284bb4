//! Proofs over TCP that both sides have the token, without sending it. A process that occupies the
//! port of a daemon learns nothing from a client: the daemon proves itself first, and the client's
//! proof is valid only for this connection.
//!
//! A proof is HMAC-SHA256 with the token as the key, over the name of the side that proves and the
//! random values of both sides.

use crate::hex;
use crate::token::BearerToken;
use jackfield_protocol::{Frame, acp::Method};
use ring::hmac;
use serde_json::{Value, json};
use std::io;

/// The method with which a client requires a proof from the daemon.
pub(crate) const CHALLENGE: &str = Method::ControlChallenge.name();
const NONCE_BYTES: usize = 32;
/// The request is the first one, so its id need not be unique.
const REQUEST_ID: u64 = 0;

/// A random value that is used once, in hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChallengeNonce([u8; NONCE_BYTES]);

/// The random values of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChallengeExchange {
    client: ChallengeNonce,
    daemon: ChallengeNonce,
}

/// The side that proves. A proof of one side is not valid for the other, so it cannot be reflected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProofSide {
    Daemon,
    Client,
}

impl ChallengeNonce {
    pub(crate) fn random() -> io::Result<ChallengeNonce> {
        let mut bytes = [0; NONCE_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(ChallengeNonce(bytes))
    }

    fn from_member(params: &Value, name: &str) -> Option<ChallengeNonce> {
        hex::decode_hex(params.get(name)?.as_str()?)?.try_into().ok().map(ChallengeNonce)
    }
}

impl ChallengeExchange {
    /// The daemon's response to a challenge: the exchange, and the line without its newline.
    pub(crate) fn answer_challenge(
        id: &str,
        params: &Value,
        daemon: ChallengeNonce,
        token: &BearerToken,
    ) -> Option<(ChallengeExchange, String)> {
        let client = ChallengeNonce::from_member(params, "nonce")?;
        let exchange = ChallengeExchange { client, daemon };
        let proof = exchange.create_proof(ProofSide::Daemon, token);
        let result = json!({ "nonce": hex::encode_hex(&exchange.daemon.0), "proof": proof });
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        Some((exchange, line))
    }

    /// Whether the parameters of `_jackfield/auth` have the proof of the client.
    pub(crate) fn is_proved(&self, params: &Value, token: &BearerToken) -> bool {
        let proof = params.get("proof").and_then(Value::as_str);
        proof.is_some_and(|it| self.verify(ProofSide::Client, it, token))
    }

    pub(crate) fn create_proof(&self, side: ProofSide, token: &BearerToken) -> String {
        hex::encode_hex(hmac::sign(&hmac_key(token), &self.message(side)).as_ref())
    }

    /// Verifies a proof in constant time.
    fn verify(&self, side: ProofSide, proof: &str, token: &BearerToken) -> bool {
        let tag = hex::decode_hex(proof).unwrap_or_default();
        hmac::verify(&hmac_key(token), &self.message(side), &tag).is_ok()
    }

    fn message(&self, side: ProofSide) -> Vec<u8> {
        let name = match side {
            ProofSide::Daemon => &b"jackfield daemon"[..],
            ProofSide::Client => b"jackfield client",
        };
        [name, &self.client.0, &self.daemon.0].concat()
    }
}

/// The client's first line.
pub(crate) fn challenge_line(nonce: &ChallengeNonce) -> String {
    let params = json!({ "nonce": hex::encode_hex(&nonce.0) });
    let request =
        json!({ "jsonrpc": "2.0", "id": REQUEST_ID, "method": CHALLENGE, "params": params });
    format!("{request}\n")
}

/// The client's second line, if the response to its challenge proves that the daemon has the token.
pub(crate) fn proof_line(
    nonce: ChallengeNonce,
    answer: &[u8],
    method: &str,
    token: &BearerToken,
) -> Option<String> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let result = answer.get("result")?;
    let exchange =
        ChallengeExchange { client: nonce, daemon: ChallengeNonce::from_member(result, "nonce")? };
    let proof = result.get("proof")?.as_str()?;
    if !exchange.verify(ProofSide::Daemon, proof, token) {
        return None;
    }
    let params = json!({ "proof": exchange.create_proof(ProofSide::Client, token) });
    Some(format!("{}\n", Frame::notification(method, &params.to_string()).text()))
}

fn hmac_key(token: &BearerToken) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, token.reveal().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(line: &str) -> Value {
        let line: Value = serde_json::from_str(line).unwrap();
        line["params"].clone()
    }

    #[test]
    fn both_sides_prove_the_token_without_sending_it() {
        let token = BearerToken::random().unwrap();
        let nonce = ChallengeNonce::random().unwrap();
        let first = challenge_line(&nonce);
        let (exchange, answer) = ChallengeExchange::answer_challenge(
            "0",
            &params(&first),
            ChallengeNonce::random().unwrap(),
            &token,
        )
        .unwrap();
        let last = proof_line(nonce, answer.as_bytes(), "_jackfield/auth", &token).unwrap();
        assert!(exchange.is_proved(&params(&last), &token));
        assert!(!exchange.is_proved(&params(&last), &BearerToken::random().unwrap()));
        assert!([first, answer, last].iter().all(|it| !it.contains(token.reveal())));
    }

    #[test]
    fn proof_is_invalid_for_the_other_side_and_other_connections() {
        let token = BearerToken::random().unwrap();
        let [ours, theirs, other] = [(); 3].map(|()| ChallengeNonce::random().unwrap());
        let exchange = ChallengeExchange { client: ours.clone(), daemon: theirs.clone() };
        let daemon = exchange.create_proof(ProofSide::Daemon, &token);
        assert!(!exchange.is_proved(&json!({ "proof": daemon }), &token), "the other side");
        let client = exchange.create_proof(ProofSide::Client, &token);
        assert!(exchange.is_proved(&json!({ "proof": client }), &token));
        let later = ChallengeExchange { client: ours.clone(), daemon: other };
        assert!(!later.is_proved(&json!({ "proof": client }), &token), "another connection");
        for proof in ["", "0", "zz", &client[2..], &format!("{client}00")] {
            assert!(!exchange.is_proved(&json!({ "proof": proof }), &token), "{proof}");
        }
        let echo = json!({ "result": { "nonce": hex::encode_hex(&theirs.0), "proof": client } })
            .to_string();
        assert_eq!(proof_line(ours, echo.as_bytes(), "_jackfield/auth", &token), None);
    }

    #[test]
    fn invalid_response_to_a_challenge_is_no_proof() {
        let token = BearerToken::random().unwrap();
        let nonce = hex::encode_hex(&ChallengeNonce::random().unwrap().0);
        for answer in [
            String::new(),
            "HTTP/1.1 400 Bad Request".to_owned(),
            r#"{"result":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600}}"#.to_owned(),
            json!({ "result": { "nonce": nonce, "proof": nonce } }).to_string(),
            json!({ "result": { "nonce": "00", "proof": "00" } }).to_string(),
        ] {
            let ours = ChallengeNonce::random().unwrap();
            assert_eq!(proof_line(ours, answer.as_bytes(), "a", &token), None, "{answer}");
        }
    }
}
