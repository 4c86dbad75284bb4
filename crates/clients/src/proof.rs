//! Proofs over TCP that both sides know the token, without showing it. A process that holds the port of a
//! daemon learns nothing from a client: the daemon proves itself first, and the client proves itself with a
//! value that is good for this one connection.
//!
//! A proof is HMAC-SHA256 with the token as the key, over the name of the side that proves and the random
//! values of both sides.

use crate::hex;
use crate::token::Token;
use jackfield_wire::Frame;
use ring::hmac;
use serde_json::{Value, json};
use std::io;

/// What a client sends to have the daemon prove itself.
pub(crate) const CHALLENGE: &str = "_jackfield/challenge";
const NONCE_BYTES: usize = 32;
/// There is nothing before it that it could be mixed up with.
const REQUEST_ID: u64 = 0;

/// A random value that is used once, in hex.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Nonce([u8; NONCE_BYTES]);

/// The random values of one connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exchange {
    client: Nonce,
    daemon: Nonce,
}

/// Who proves. A proof of one side is none of the other: what was heard cannot be sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Daemon,
    Client,
}

impl Nonce {
    pub(crate) fn random() -> io::Result<Nonce> {
        let mut bytes = [0; NONCE_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Nonce(bytes))
    }

    fn from_member(params: &Value, name: &str) -> Option<Nonce> {
        hex::decode(params.get(name)?.as_str()?)?.try_into().ok().map(Nonce)
    }
}

impl Exchange {
    /// What the daemon answers to the parameters of a challenge: the exchange, and the line without its end.
    pub(crate) fn answer(
        id: &str,
        params: &Value,
        daemon: Nonce,
        token: &Token,
    ) -> Option<(Exchange, String)> {
        let client = Nonce::from_member(params, "nonce")?;
        let exchange = Exchange { client, daemon };
        let proof = exchange.prove(Side::Daemon, token);
        let result = json!({ "nonce": hex::encode(&exchange.daemon.0), "proof": proof });
        let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        Some((exchange, line))
    }

    /// Whether the parameters of `_jackfield/auth` have the proof of the client.
    pub(crate) fn is_proved(&self, params: &Value, token: &Token) -> bool {
        let proof = params.get("proof").and_then(Value::as_str);
        proof.is_some_and(|it| self.verify(Side::Client, it, token))
    }

    pub(crate) fn prove(&self, side: Side, token: &Token) -> String {
        hex::encode(hmac::sign(&key(token), &self.message(side)).as_ref())
    }

    /// In constant time.
    fn verify(&self, side: Side, proof: &str, token: &Token) -> bool {
        let tag = hex::decode(proof).unwrap_or_default();
        hmac::verify(&key(token), &self.message(side), &tag).is_ok()
    }

    fn message(&self, side: Side) -> Vec<u8> {
        let name = match side {
            Side::Daemon => &b"jackfield daemon"[..],
            Side::Client => b"jackfield client",
        };
        [name, &self.client.0, &self.daemon.0].concat()
    }
}

/// The line with which a client begins.
pub(crate) fn challenge(nonce: &Nonce) -> String {
    let params = json!({ "nonce": hex::encode(&nonce.0) });
    let request =
        json!({ "jsonrpc": "2.0", "id": REQUEST_ID, "method": CHALLENGE, "params": params });
    format!("{request}\n")
}

/// The line with which a client goes on, if the answer to its challenge comes from one who knows the token.
pub(crate) fn response(nonce: Nonce, answer: &[u8], method: &str, token: &Token) -> Option<String> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let result = answer.get("result")?;
    let exchange = Exchange { client: nonce, daemon: Nonce::from_member(result, "nonce")? };
    let proof = result.get("proof")?.as_str()?;
    if !exchange.verify(Side::Daemon, proof, token) {
        return None;
    }
    let params = json!({ "proof": exchange.prove(Side::Client, token) });
    Some(format!("{}\n", Frame::notification(method, &params.to_string()).text()))
}

fn key(token: &Token) -> hmac::Key {
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
    fn both_sides_prove_that_they_know_the_token_and_never_send_it() {
        let token = Token::random().unwrap();
        let nonce = Nonce::random().unwrap();
        let first = challenge(&nonce);
        let (exchange, answer) =
            Exchange::answer("0", &params(&first), Nonce::random().unwrap(), &token).unwrap();
        let last = response(nonce, answer.as_bytes(), "_jackfield/auth", &token).unwrap();
        assert!(exchange.is_proved(&params(&last), &token));
        assert!(!exchange.is_proved(&params(&last), &Token::random().unwrap()));
        assert!([first, answer, last].iter().all(|it| !it.contains(token.reveal())));
    }

    #[test]
    fn what_was_heard_is_no_proof_of_the_other_side_or_of_another_connection() {
        let token = Token::random().unwrap();
        let [ours, theirs, other] = [(); 3].map(|()| Nonce::random().unwrap());
        let exchange = Exchange { client: ours.clone(), daemon: theirs.clone() };
        let daemon = exchange.prove(Side::Daemon, &token);
        assert!(!exchange.is_proved(&json!({ "proof": daemon }), &token), "the other side");
        let client = exchange.prove(Side::Client, &token);
        assert!(exchange.is_proved(&json!({ "proof": client }), &token));
        let later = Exchange { client: ours.clone(), daemon: other };
        assert!(!later.is_proved(&json!({ "proof": client }), &token), "another connection");
        for proof in ["", "0", "zz", &client[2..], &format!("{client}00")] {
            assert!(!exchange.is_proved(&json!({ "proof": proof }), &token), "{proof}");
        }
        let echo =
            json!({ "result": { "nonce": hex::encode(&theirs.0), "proof": client } }).to_string();
        assert_eq!(response(ours, echo.as_bytes(), "_jackfield/auth", &token), None);
    }

    #[test]
    fn what_is_no_answer_to_a_challenge_is_no_proof() {
        let token = Token::random().unwrap();
        let nonce = hex::encode(&Nonce::random().unwrap().0);
        for answer in [
            String::new(),
            "HTTP/1.1 400 Bad Request".to_owned(),
            r#"{"result":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600}}"#.to_owned(),
            json!({ "result": { "nonce": nonce, "proof": nonce } }).to_string(),
            json!({ "result": { "nonce": "00", "proof": "00" } }).to_string(),
        ] {
            let ours = Nonce::random().unwrap();
            assert_eq!(response(ours, answer.as_bytes(), "a", &token), None, "{answer}");
        }
    }
}
