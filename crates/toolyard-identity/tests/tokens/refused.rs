//! The table of tokens that are refused, each for the expected reason.

use super::*;

struct Case {
    name: String,
    token: String,
    reason: &'static str,
}

/// All cases: a valid token, changed in one way.
fn cases(issuer: &Signer, attacker: &Signer) -> Vec<Case> {
    let mut cases = Vec::new();
    forms(issuer, &mut cases);
    malformed_claims(issuer, &mut cases);
    signatures(issuer, &mut cases);
    headers(issuer, &mut cases);
    keys(issuer, attacker, &mut cases);
    claims_of_identity(issuer, &mut cases);
    times(issuer, &mut cases);
    cases
}

fn add(cases: &mut Vec<Case>, name: impl Into<String>, token: String, reason: &'static str) {
    cases.push(Case { name: name.into(), token, reason });
}

/// Texts that are not signed JWTs.
fn forms(issuer: &Signer, cases: &mut Vec<Case>) {
    let valid = issuer.token(&header(), &claims());
    let parts: Vec<&str> = valid.split('.').collect();
    let (head, body, signature) = (parts[0], parts[1], parts[2]);
    let not_signed = "not a signed JWT";
    for (name, token) in [
        ("empty", String::new()),
        ("one part", head.to_owned()),
        ("two parts", format!("{head}.{body}")),
        ("no signature", format!("{head}.{body}.")),
        ("four parts", format!("{valid}.x")),
        ("dots only", "..".to_owned()),
    ] {
        add(cases, name, token, not_signed);
    }
    let no_header = "header of the token is not";
    for (name, token) in [
        ("an opaque token", "a.b.c".to_owned()),
        ("empty header", format!(".{body}.{signature}")),
        ("header with padding", format!("{head}==.{body}.{signature}")),
        ("header in standard base64", format!("{}+/.{body}.{signature}", &head[..head.len() - 2])),
        ("header is a list", format!("{}.{body}.{signature}", encode("[]"))),
        ("header is no JSON", format!("{}.{body}.{signature}", encode("alg=RS256"))),
        ("header is not UTF-8", format!("{}.{body}.{signature}", encode(b"{\"alg\":\"\xff\"}"))),
        ("header with trailing text", format!("{}.{body}.{signature}", encode("{\"alg\":\"RS256\"} {}"))),
        ("white space before", format!(" {valid}")),
        ("line break inside", format!("{head}\n.{body}.{signature}")),
        (
            "huge header",
            issuer.token(&json!({"alg": "RS256", "kid": "rsa", "x": "x".repeat(5_000)}), &claims()),
        ),
        (
            "two algorithms",
            issuer.token_of_texts(
                r#"{"alg":"RS256","kid":"rsa","alg":"none"}"#,
                &claims().to_string(),
                "RS256",
            ),
        ),
    ] {
        add(cases, name, token, no_header);
    }
}

/// Claims that are not an object, or ambiguous.
fn malformed_claims(issuer: &Signer, cases: &mut Vec<Case>) {
    let valid = issuer.token(&header(), &claims());
    let parts: Vec<&str> = valid.split('.').collect();
    let (head, body, signature) = (parts[0], parts[1], parts[2]);
    let no_claims = "claims of the token are not";
    for (name, token) in [
        ("empty claims", format!("{head}..{signature}")),
        ("claims are a list", issuer.token(&header(), &json!([]))),
        ("claims are a text", issuer.token(&header(), &json!("x"))),
        ("claims are no JSON", issuer.token_of_texts(&header().to_string(), "sub=ada", "RS256")),
        ("claims with padding", format!("{head}.{body}=.{signature}")),
        ("deep claims", {
            let deep = format!("{{\"a\":{}1{}}}", "[".repeat(1_000), "]".repeat(1_000));
            issuer.token_of_texts(&header().to_string(), &deep, "RS256")
        }),
    ] {
        add(cases, name, token, no_claims);
    }
    for twice in ["sub", "aud", "exp", "iss", "scope"] {
        let text = claims().to_string();
        let text = format!("{},\"{twice}\":{}}}", &text[..text.len() - 1], claims()[twice]);
        let token = issuer.token_of_texts(&header().to_string(), &text, "RS256");
        add(cases, format!("claim {twice} twice"), token, no_claims);
    }
}

/// Sizes and signatures.
fn signatures(issuer: &Signer, cases: &mut Vec<Case>) {
    let valid = issuer.token(&header(), &claims());
    let parts: Vec<&str> = valid.split('.').collect();
    let (head, body, signature) = (parts[0], parts[1], parts[2]);
    add(cases, "too long", issuer.token(&header(), &with("x", json!("x".repeat(20_000)))), "too long");
    add(cases, "a megabyte", "x".repeat(1 << 20), "too long");
    add(cases, "encrypted", "a.b.c.d.e".to_owned(), "encrypted tokens");
    let other_signature = format!("{head}.{body}.{}", &signature[..signature.len() - 8]);
    add(cases, "truncated signature", other_signature, "signature of the token is wrong");
    add(cases, "signature with padding", format!("{valid}=="), "signature of the token is wrong");
    let other_claims = encode(with("sub", json!("admin")).to_string());
    add(
        cases,
        "claims replaced",
        format!("{head}.{other_claims}.{signature}"),
        "signature of the token is wrong",
    );
    add(
        cases,
        "zero signature",
        format!("{head}.{body}.{}", encode([0; 256])),
        "signature of the token is wrong",
    );
}

/// Headers that say something wrong.
fn headers(issuer: &Signer, cases: &mut Vec<Case>) {
    let not_accepted = "algorithm of the token is not accepted";
    for algorithm in [
        "none", "None", "NONE", "nOnE", "HS256", "HS384", "HS512", "rs256", "ES512", "RSA-OAEP", "A128KW", "",
    ] {
        let token = issuer.token(&json!({"alg": algorithm, "kid": "rsa"}), &claims());
        add(cases, format!("alg {algorithm}"), token, not_accepted);
    }
    for (name, algorithm) in [("null", json!(null)), ("list", json!(["RS256"])), ("number", json!(256))] {
        let token = issuer.token(&json!({"alg": algorithm, "kid": "rsa"}), &claims());
        add(cases, format!("alg is {name}"), token, not_accepted);
    }
    add(cases, "no alg", issuer.token(&json!({"kid": "rsa"}), &claims()), not_accepted);
    let unsigned = format!("{}.{}.", encode(r#"{"alg":"none"}"#), encode(claims().to_string()));
    add(cases, "alg none without signature", unsigned, "not a signed JWT");
    for name in ["id_token", "logout+jwt", "dpop+jwt", "secevent+jwt", "JWE", ""] {
        let token = issuer.token(&json!({"alg": "RS256", "kid": "rsa", "typ": name}), &claims());
        add(cases, format!("typ {name}"), token, "not an access token");
    }
    let token = issuer.token(&json!({"alg": "RS256", "kid": "rsa", "typ": ["JWT"]}), &claims());
    add(cases, "typ is a list", token, "not an access token");
    for critical in [json!(["exp"]), json!([]), json!("b64")] {
        let token = issuer.token(&json!({"alg": "RS256", "kid": "rsa", "crit": critical}), &claims());
        add(cases, format!("crit {critical}"), token, "critical header");
    }
    let token = issuer.token(&json!({"alg": "RS256", "kid": "rsa", "b64": false}), &claims());
    add(cases, "payload without base64", token, "critical header");
    for id in [json!(""), json!(7), json!(null), json!(["rsa"]), json!("x".repeat(300))] {
        let token = issuer.token(&json!({"alg": "RS256", "kid": id}), &claims());
        add(cases, format!("kid {id:.20}"), token, "key id of the token is malformed");
    }
}

/// Keys of others, and keys that are not for this.
fn keys(issuer: &Signer, attacker: &Signer, cases: &mut Vec<Case>) {
    let wrong_signature = "signature of the token is wrong";
    for (algorithm, id) in
        [("RS256", "rsa"), ("PS256", "rsa"), ("ES256", "p256"), ("ES384", "p384"), ("EdDSA", "ed")]
    {
        let token = attacker.token(&json!({"alg": algorithm, "kid": id}), &claims());
        add(cases, format!("{algorithm} of an attacker"), token, wrong_signature);
    }
    let mut embedded = json!({"alg": "RS256", "kid": "rsa", "jwk": attacker.rsa_key()});
    add(cases, "key of an attacker in the header", attacker.token(&embedded, &claims()), wrong_signature);
    embedded["jku"] = json!("https://evil.example/keys");
    embedded["x5u"] = json!("https://evil.example/certificate");
    add(cases, "address of an attacker's keys", attacker.token(&embedded, &claims()), wrong_signature);
    let without_id = json!({"alg": "ES256", "jwk": {"kty": "EC"}});
    add(cases, "attacker without key id", attacker.token(&without_id, &claims()), wrong_signature);
    let no_algorithm = "algorithm of the token is not one of its key";
    for (algorithm, id) in [
        ("ES256", "rsa"),
        ("RS256", "p256"),
        ("ES256", "p384"),
        ("EdDSA", "p256"),
        ("RS256", "ed"),
        ("RS256", "pss-only"),
    ] {
        let token = issuer.token(&json!({"alg": algorithm, "kid": id}), &claims());
        add(cases, format!("{algorithm} with key {id}"), token, no_algorithm);
    }
    let unknown = "signing key is unknown";
    for id in ["other", "RSA", "rsa ", "../rsa", "' OR 1=1 --", "oct", "enc"] {
        let token = issuer.token(&json!({"alg": "RS256", "kid": id}), &claims());
        add(cases, format!("key id {id}"), token, unknown);
    }
    let token = issuer.token(&json!({"alg": "PS256"}), &claims());
    add(cases, "several keys fit", token, "not exactly one fits");
    for (index, secret) in issuer.rsa_public_encodings().iter().enumerate() {
        let token = hmac_token(&json!({"alg": "HS256", "kid": "rsa"}), &claims(), secret);
        add(
            cases,
            format!("HMAC with the public key {index}"),
            token,
            "algorithm of the token is not accepted",
        );
        let token = hmac_token(&json!({"alg": "RS256", "kid": "rsa"}), &claims(), secret);
        add(cases, format!("HMAC with the public key {index} as RS256"), token, wrong_signature);
    }
    let published = b"a secret that issuers should not publish";
    let token = hmac_token(&json!({"alg": "HS256", "kid": "oct"}), &claims(), published);
    add(cases, "HMAC with a published secret", token, "algorithm of the token is not accepted");
    let token = issuer.token_of_texts(r#"{"alg":"RS512","kid":"rsa"}"#, &claims().to_string(), "RS256");
    add(cases, "hash other than stated", token, wrong_signature);
    let token = issuer.token_of_texts(r#"{"alg":"PS256","kid":"rsa"}"#, &claims().to_string(), "RS256");
    add(cases, "padding other than stated", token, wrong_signature);
}

/// Claims about issuer, audience and subject.
fn claims_of_identity(issuer: &Signer, cases: &mut Vec<Case>) {
    let mut add_claims = |name: String, claims: Value, reason| {
        add(cases, name, issuer.token(&header(), &claims), reason);
    };
    for wrong in [
        json!("https://evil.example"),
        json!("https://id.example/"),
        json!("HTTPS://ID.EXAMPLE"),
        json!("https://id.example.evil.example"),
        json!(["https://id.example"]),
        json!(null),
        json!(7),
    ] {
        add_claims(format!("issuer {wrong}"), with("iss", wrong), "of another issuer");
    }
    add_claims("no issuer".to_owned(), without("iss"), "of another issuer");
    for wrong in [
        json!("https://other.example/mcp"),
        json!("https://tools.example"),
        json!("https://tools.example/mcp/"),
        json!("https://tools.example/mcp https://other.example"),
        json!(""),
        json!([]),
        json!(["https://other.example", "https://tools.example/MCP"]),
    ] {
        add_claims(format!("audience {wrong}"), with("aud", wrong), "for another audience");
    }
    for wrong in [
        json!(null),
        json!(7),
        json!({"a": 1}),
        json!([["https://tools.example/mcp"]]),
        json!(["https://tools.example/mcp", 7]),
    ] {
        add_claims(format!("audience {wrong}"), with("aud", wrong), "no valid audience");
    }
    add_claims("no audience".to_owned(), without("aud"), "no valid audience");
    for wrong in [json!(""), json!(7), json!(null), json!(["ada"]), json!("a\nb"), json!("x".repeat(300))] {
        add_claims(format!("subject {wrong:.20}"), with("sub", wrong), "no valid subject");
    }
    add_claims("no subject".to_owned(), without("sub"), "no valid subject");
    add_claims("bound to a key".to_owned(), with("cnf", json!({"jkt": "x"})), "bound to a key");
    for wrong in [
        json!(""),
        json!("tools"),
        json!("tools:call:more"),
        json!("TOOLS:CALL"),
        json!(7),
        json!({"tools:call": true}),
    ] {
        add_claims(format!("scope {wrong}"), with("scope", wrong), "lacks a scope");
    }
    add_claims("no scope".to_owned(), without("scope"), "lacks a scope");
}

/// Claims about times.
fn times(issuer: &Signer, cases: &mut Vec<Case>) {
    let mut add_claims = |name: String, claims: Value, reason| {
        add(cases, name, issuer.token(&header(), &claims), reason);
    };
    for expired in [NOW - 60, NOW - 61, NOW - 86_400, 1, 0] {
        let mut claims = with("exp", json!(expired));
        claims["iat"] = json!(0);
        add_claims(format!("expired at {expired}"), claims, "expired");
    }
    add_claims("no expiry".to_owned(), without("exp"), "no time of expiry");
    let malformed = "malformed time";
    for wrong in [
        json!("never"),
        json!(NOW.to_string()),
        json!(-1),
        json!(1e300),
        json!(null),
        json!([NOW + 60]),
        json!(true),
        json!(i64::MAX),
    ] {
        for name in ["exp", "nbf", "iat"] {
            add_claims(format!("{name} is {wrong}"), with(name, wrong.clone()), malformed);
        }
    }
    for future in [NOW + 61, NOW + 86_400] {
        add_claims(format!("not before {future}"), with("nbf", json!(future)), "not valid yet");
        add_claims(format!("issued at {future}"), with("iat", json!(future)), "in the future");
    }
    let mut claims = with("exp", json!(NOW - 10));
    claims["iat"] = json!(NOW - 5);
    add_claims("expired before it was issued".to_owned(), claims, "expired before");
}

#[test]
fn every_token_of_the_table_is_refused_for_its_reason() {
    let (issuer, attacker) = (Signer::generate(), Signer::generate());
    let keys = KeySet::parse(&issuer.published_keys().to_string()).unwrap();
    let config = config();
    validate_token(&issuer.token(&header(), &claims()), &keys, &config, NOW)
        .expect("the unchanged token is valid");
    let cases = cases(&issuer, &attacker);
    let mut wrong = Vec::new();
    for case in &cases {
        match validate_token(&case.token, &keys, &config, NOW) {
            Ok(_) => wrong.push(format!("{}: ACCEPTED", case.name)),
            Err(error) if error.to_string().contains(case.reason) => {}
            Err(error) => wrong.push(format!("{}: expected `{}`, was `{error}`", case.name, case.reason)),
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    let mut names: Vec<_> = cases.iter().map(|case| case.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "each case is another one");
    assert!(cases.len() >= 60, "{}", cases.len());
    // As documented in docs/guide/callers.md.
    println!("{} cases", cases.len());
}
