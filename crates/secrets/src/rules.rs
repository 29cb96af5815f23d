//! The table of known secret formats: access tokens, API keys and webhook addresses.
//!
//! The formats (prefix, alphabet, length) are facts from the rule set of gitleaks (github.com/gitleaks/gitleaks,
//! config/gitleaks.toml, MIT, Copyright (c) 2019 Zachary Rice) and from the providers' documentation, in our own form.

/// One secret format.
pub(super) struct Rule {
    /// Texts of which one occurs wherever the pattern matches: the pattern runs only where one is found. Case does not
    /// count.
    pub(super) keywords: &'static [&'static str],
    /// A pattern of the `regex` crate, of which the last group that took part is the secret, or the whole match where
    /// it has no group. Its repetitions are bounded or end with the match, so that a search never looks far beyond
    /// what it finds.
    pub(super) pattern: &'static str,
    /// What a match must look like.
    pub(super) value: SecretShape,
}

/// The check that the secret of a match must pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretShape {
    /// No placeholder such as `ghp_xxxxxxxx`.
    Token,
    /// The same, and not made of words.
    Scrambled,
    /// Selection by a person: anything but a placeholder or a variable.
    Password,
}

const fn rule(keywords: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule { keywords, pattern, value: SecretShape::Token }
}

const fn scrambled(keywords: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule { keywords, pattern, value: SecretShape::Scrambled }
}

const fn password(keywords: &'static [&'static str], pattern: &'static str) -> Rule {
    Rule { keywords, pattern, value: SecretShape::Password }
}

/// Formats with a prefix or a shape of their own.
pub(super) const RULES: &[Rule] = &[
    // Models and their hubs.
    scrambled(&["sk-", "pk-", "rk-"], r"(?:^|[^A-Za-z0-9_/.-])((?:sk|pk|rk)-[A-Za-z0-9_-]{16,})"),
    rule(&["hf_", "api_org_"], r"\b((?:hf|api_org)_[A-Za-z0-9]{30,})"),
    rule(&["r8_"], r"\br8_[A-Za-z0-9]{32,}"),
    rule(&["gsk_"], r"\bgsk_[A-Za-z0-9]{40,}"),
    rule(&["xai-"], r"\bxai-[A-Za-z0-9]{60,}"),
    rule(&["pplx-"], r"\bpplx-[A-Za-z0-9]{40,}"),
    rule(&["nvapi-"], r"\bnvapi-[A-Za-z0-9_-]{50,}"),
    rule(&["tvly-"], r"\btvly-(?:dev-|prod-)?[A-Za-z0-9]{28,}"),
    rule(&["lsv2_"], r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    rule(&["pcsk_"], r"\bpcsk_[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,}"),
    scrambled(&["fw_"], r"\bfw_[A-Za-z0-9]{22,}\b"),
    // Code hosts and package registries.
    rule(&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"gh[opsur]_[A-Za-z0-9]{20,}"),
    rule(&["github_pat_"], r"github_pat_[A-Za-z0-9_]{20,}"),
    rule(
        &[
            "glpat-", "gldt-", "glft-", "glrt-", "glptt-", "glsoat-", "glimt-", "glffct-", "gloas-",
            "glagent-", "glcbt-",
        ],
        r"gl(?:pat|dt|ft|rt|ptt|soat|imt|ffct|oas|agent|cbt)-[A-Za-z0-9_-]{16,}(?:\.[0-9a-z]{9}\b)?",
    ),
    rule(&["gr1348941"], r"GR1348941[A-Za-z0-9_-]{20,}"),
    rule(&["contribsys"], r"(?i)CONTRIBSYS__COM[ \t]{0,3}[=:][ \t]{0,3}([a-f0-9]{8}:[a-f0-9]{8})\b"),
    rule(&["_gitlab_session="], r"_gitlab_session=([0-9a-z]{32})"),
    rule(&["atatt3", "atbb"], r"\b(?:ATATT3[A-Za-z0-9_=-]{60,}|ATBB[A-Za-z0-9]{28,})"),
    rule(&["npm_"], r"\bnpm_[A-Za-z0-9]{36}"),
    rule(&["pypi-ageichlwas5vcmc", "pypi-agenddhlc3"], r"pypi-AgE[IN][A-Za-z0-9_-]{50,}"),
    rule(&["rubygems_"], r"\brubygems_[a-f0-9]{48}"),
    rule(&["clojars_"], r"(?i)\bCLOJARS_[a-z0-9]{60}"),
    rule(&["oy2"], r"\boy2[a-z0-9]{43}\b"),
    scrambled(&["cio"], r"\bcio[A-Za-z0-9]{32}\b"),
    rule(&["dckr_pat_", "dckr_oat_"], r"\bdckr_[po]at_[A-Za-z0-9_-]{27,}"),
    rule(&["akcp", "cmvmd"], r"\b(?:AKCp[A-Za-z0-9]{69}|cmVmd[A-Za-z0-9]{59})\b"),
    rule(&["sgp_"], r"\bsgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"),
    rule(&["sqp_", "squ_", "sqa_"], r"\bsq[pua]_[a-f0-9]{40}\b"),
    rule(&["ccipat_"], r"\bCCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    rule(&["bkua_"], r"\bbkua_[a-f0-9]{40}"),
    // Clouds.
    rule(
        &["akia", "asia", "abia", "acca", "agpa", "aida", "aroa", "a3t"],
        r"\b((?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA)[A-Z0-9]{16})\b",
    ),
    rule(
        &["absk", "bedrock-api-key-"],
        r"\b(?:ABSK[A-Za-z0-9+/]{100,}={0,2}|bedrock-api-key-[A-Za-z0-9+/=]{20,})",
    ),
    rule(&["amzn.mws."], r"\bamzn\.mws\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    rule(&["aiza"], r"AIza[A-Za-z0-9_-]{30,}"),
    rule(&["ya29."], r"\bya29\.[A-Za-z0-9_-]{20,}"),
    rule(&["gocspx-"], r"\bGOCSPX-[A-Za-z0-9_-]{24,}"),
    rule(&["1//0"], r"(?:^|[^A-Za-z0-9/])(1//0[A-Za-z0-9_-]{30,})"),
    rule(&["q~"], r"(?:^|[^A-Za-z0-9_~.])([A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34})"),
    rule(
        &["accountkey=", "sharedaccesskey="],
        r"(?i)\b(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})",
    ),
    // A signature behind a service version, an expiry or a start, in the address or the token of a shared access.
    rule(&["sig="], r"(?i)[?&;](?:sig)=([A-Za-z0-9%+/_-]{40,}(?:%3D|=)?)"),
    rule(
        &["+acr", "+asb", "+aiot", "+aeh", "aioth", "azca", "azfu", "azse"],
        r"\b[A-Za-z0-9+/]{42,76}(?:\+(?:ACR|ASb|AIoT|AEh)|AIoT[A-Z]|AzCa|AzFu|AzSe)[A-Za-z0-9+/]{6,}={0,2}",
    ),
    rule(&["ltai"], r"\bLTAI[A-Za-z0-9]{17,21}\b"),
    rule(&["akid"], r"\bAKID[A-Za-z0-9]{32,}\b"),
    rule(&["dop_v1_", "doo_v1_", "dor_v1_"], r"(?i)\bdo[opr]_v1_[a-f0-9]{64}"),
    rule(&["dapi"], r"\bdapi[a-f0-9]{32}(?:-[0-9])?\b"),
    scrambled(&["hvs.", "hvb.", "hvr."], r"\bhv[sbr]\.[A-Za-z0-9_-]{24,}"),
    scrambled(&["s."], r"(?:^|[\s'\x22=:`])(s\.[A-Za-z0-9]{24})(?:$|[\s'\x22,;`])"),
    rule(&["atlasv1"], r"(?i)\b[a-z0-9]{14}\.atlasv1\.[a-z0-9_=-]{60,70}"),
    rule(&["hrku-"], r"\bHRKU-[A-Za-z0-9_-]{36,}"),
    scrambled(&["rnd_"], r"\brnd_[A-Za-z0-9]{28,}\b"),
    rule(
        &["fo1_", "fm1", "fm2_"],
        r"\b(?:fo1_[A-Za-z0-9_-]{43}|fm1[ar]_[A-Za-z0-9+/]{100,}={0,3}|fm2_[A-Za-z0-9+/]{100,}={0,3})",
    ),
    rule(&["v1.0-"], r"\bv1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    rule(&["4b1d"], r"\b4b1d[A-Za-z0-9]{38}\b"),
    rule(&["pul-"], r"\bpul-[a-f0-9]{40}"),
    rule(&["pscale_"], r"(?i)\bpscale_(?:tkn|oauth|pw)_[\w=.-]{32,64}"),
    rule(&["sbp_", "sb_secret_"], r"\b(?:sbp_(?:v0_)?[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,})"),
    rule(&["napi_"], r"\bnapi_[a-z0-9]{48,}"),
    rule(&["nfp_"], r"\bnfp_[A-Za-z0-9]{36}"),
    rule(&["vercel_blob_rw_", "vcp_"], r"\b(?:vercel_blob_rw_[A-Za-z0-9_]{30,}|vcp_[A-Za-z0-9]{40,})"),
    rule(&["tskey-"], r"\btskey-[a-z]+-[A-Za-z0-9]+(?:CNTRL)?-[A-Za-z0-9]{16,}"),
    rule(&["sha256~"], r"\bsha256~[A-Za-z0-9_-]{43}"),
    rule(
        &["ntk_", "t1.", "aqvn", "yca"],
        r"\b(?:t1\.[A-Za-z0-9_-]{10,}={0,2}\.[A-Za-z0-9_-]{86}={0,2}|AQVN[A-Za-z0-9_-]{35,38}|YCA[A-Za-z0-9_-]{37})",
    ),
    // Payments and shops.
    rule(
        &["sk_", "rk_", "pk_", "whsec_"],
        r"\b(?:[spr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{24,})",
    ),
    scrambled(
        &["sq0atp-", "sq0csp-", "eaaa"],
        r"\b(?:sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}|EAAA[A-Za-z0-9_-]{56,64})",
    ),
    rule(&["shpat_", "shpca_", "shppa_", "shpss_", "shptka_"], r"shp(?:at|ca|pa|ss|tka)_[a-fA-F0-9]{32}"),
    rule(&["access_token$"], r"\baccess_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    rule(
        &["access-sandbox-", "access-development-", "access-production-"],
        r"\baccess-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    rule(&["flwseck"], r"(?i)\bFLWSECK(?:_TEST)?-[a-h0-9]{12,}(?:-X)?"),
    rule(&["duffel_"], r"(?i)\bduffel_(?:test|live)_[a-z0-9_=-]{43}"),
    rule(&["shippo_"], r"\bshippo_(?:live|test)_[a-fA-F0-9]{40}"),
    rule(&["ezak", "eztk"], r"\bEZ[AT]K[A-Za-z0-9]{54}\b"),
    rule(&["rzp_live_", "rzp_test_"], r"\brzp_(?:live|test)_[A-Za-z0-9]{14,}"),
    // Mail and messages.
    rule(
        &["xoxa", "xoxb", "xoxp", "xoxr", "xoxs", "xoxo", "xoxe", "xoxc", "xoxd"],
        r"xox[abcdeoprs](?:\.xox[bp])?-[A-Za-z0-9%-]{10,}",
    ),
    rule(&["xapp-"], r"(?i)\bxapp-[0-9]-[a-z0-9]+-[0-9]+-[a-z0-9]+"),
    rule(
        &["hooks.slack.com"],
        r"(?i)hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{20,})",
    ),
    rule(&["/api/webhooks/"], r"(?i)discord(?:app)?\.com/api/webhooks/([0-9]{17,20}/[A-Za-z0-9_-]{40,})"),
    rule(
        &["webhook.office.com", "/incomingwebhook/"],
        r"(?i)webhook\.office\.com/webhookb2/([a-z0-9@-]{60,}/IncomingWebhook/[a-z0-9/-]{30,})",
    ),
    rule(
        &["chat.googleapis.com"],
        r"(?i)chat\.googleapis\.com/v1/spaces/[a-z0-9_-]+/messages\?([a-z0-9_=&%-]{30,})",
    ),
    scrambled(&["."], r"\b((?:[MNO][A-Za-z0-9_-]{23,27})\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40})"),
    rule(&[":aa"], r"\b([0-9]{8,10}:AA[A-Za-z0-9_-]{32,34})\b"),
    rule(&["sg."], r"\bSG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    rule(&["key-"], r"\b(key-[a-f0-9]{32})\b"),
    rule(&["-"], r"\b([a-f0-9]{32}-[a-f0-9]{8}-[a-f0-9]{8})\b"),
    rule(&["-us"], r"\b([a-f0-9]{32}-us[0-9]{1,2})\b"),
    rule(&["xkeysib-", "xsmtpsib-"], r"\bx(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    scrambled(&["re_"], r"\bre_[A-Za-z0-9]{6,10}_[A-Za-z0-9]{20,}"),
    rule(&["sk", "ac"], r"\b((?:SK|AC)[0-9a-f]{32})\b"),
    rule(&["eaac", "eaam"], r"\bEAA[MC][A-Za-z0-9]{80,}"),
    rule(&["aaaaaaaaaaaaaaaaaaaaaa"], r"\bA{22}[A-Za-z0-9%]{60,}"),
    rule(&["tfp_"], r"\btfp_[A-Za-z0-9_.=-]{40,}"),
    rule(&["pnu_"], r"\bpnu_[A-Za-z0-9]{36}"),
    // Watching, testing, planning.
    rule(
        &["glc_", "glsa_", "eyjrijoi"],
        r"\b(?:glc_[A-Za-z0-9+/]{32,}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|eyJrIjoi[A-Za-z0-9]{60,}={0,3})",
    ),
    rule(
        &["sntrys_", "sntryu_"],
        r"\b(?:sntrys_eyJ[A-Za-z0-9+/=]{20,}_[A-Za-z0-9+/]{43}|sntryu_[a-f0-9]{64})",
    ),
    rule(
        &["nrak-", "nrii-", "nrjs-", "nral"],
        r"\b(?:NRAK-[A-Z0-9]{27}|NRII-[A-Za-z0-9_-]{32}|NRJS-[a-f0-9]{19}|[a-f0-9]{36}NRAL)",
    ),
    rule(&["dt0c01.", "dt0s"], r"\bdt0[cs][0-9]{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}"),
    rule(&["phx_", "phc_"], r"\bph[xc]_[A-Za-z0-9]{40,}"),
    rule(&["pmak-"], r"\bPMAK-[a-fA-F0-9]{24}-[a-fA-F0-9]{34}"),
    rule(&["api-"], r"\b(API-[A-Z0-9]{26})\b"),
    rule(&["lin_api_", "lin_oauth_"], r"\blin_(?:api|oauth)_[A-Za-z0-9]{40,}"),
    scrambled(&["ntn_", "secret_"], r"\b(?:ntn_[0-9]{11}[A-Za-z0-9]{35}|secret_[A-Za-z0-9]{43})\b"),
    rule(&["figd_"], r"\bfigd_[A-Za-z0-9_-]{36,}"),
    rule(&["fio-u-"], r"\bfio-u-[A-Za-z0-9_=-]{64}"),
    rule(&["pat"], r"\b(pat[A-Za-z0-9]{14}\.[a-f0-9]{64})\b"),
    rule(
        &["pat-na", "pat-eu"],
        r"\bpat-(?:na|eu)[0-9]-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    rule(&["pat.", "sat."], r"\b[ps]at\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    rule(&["rdme_"], r"\brdme_[a-z0-9]{70}"),
    rule(&["ico-"], r"\bico-[A-Za-z0-9]{32}\b"),
    rule(&["p8e-"], r"\bp8e-[A-Za-z0-9]{32}\b"),
    rule(&["sk.ey", "pk.ey"], r"\b(sk\.eyJ[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{20,})"),
    rule(&["dp."], r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    rule(&["ops_eyj"], r"\bops_eyJ[A-Za-z0-9+/]{100,}={0,3}"),
    rule(
        &["a3-"],
        r"\bA3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}\b",
    ),
    rule(&["sm_aat_", "sm_pat_", "sm_sat_"], r"\bsm_[aps]at_[A-Za-z0-9]{16}"),
    rule(&["s-s4t2"], r"\bs-s4t2(?:ud|af)-[a-f0-9]{64}"),
    rule(&["tk-us-"], r"\btk-us-[A-Za-z0-9_-]{48}"),
    rule(&["_mmk"], r"\b[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b"),
    rule(&["dnkey-"], r"\bdnkey-[A-Za-z0-9=_-]{26}-[A-Za-z0-9=_-]{52}"),
    rule(
        &["acc_", "acc-"],
        r"\b(?:sc|ext|scauth|authress)_[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][a-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}",
    ),
    rule(&["ptla_", "ptlc_"], r"\bptl[ac]_[A-Za-z0-9]{40,}"),
    // Keys and seeds themselves.
    rule(
        &["age-secret-key-1", "age-plugin-"],
        r"(?i)AGE-(?:SECRET-KEY|PLUGIN-[A-Z]+)-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{50,}",
    ),
    rule(&["secret=", "otpauth:"], r"(?i)\botpauth://[^\s?]{0,300}\?[^\s]{0,300}?secret=([A-Z2-7]{16,}=*)"),
    rule(
        &["ey"],
        r"\b(ey[A-Za-z0-9_-]{8,}\.ey[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{8,})?|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+){0,2})",
    ),
    rule(&["zxlk", "zxlj", "zxl0"], r"\bZXl[KJ0][A-Za-z0-9+/_-]{60,}={0,2}"),
    rule(&["xprv", "yprv", "zprv", "tprv"], r"\b[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,}"),
    rule(&["nsec1"], r"\bnsec1[02-9ac-hj-np-z]{58}"),
    rule(
        &["miie", "miic", "miij", "miib", "mc4caqaw", "mhcca"],
        r"\b(?:MII[A-Za-z0-9+/]{2,4}(?:IBAAKB|IBAAKC|IBADANBgkqhkiG9w0BAQ|IBADCB|AgEAAoIB)|MC4CAQAwBQYDK2Vw|MHcCAQEE)[A-Za-z0-9+/\s]{20,}={0,2}",
    ),
    rule(&["private-lines:"], r"Private-Lines: [0-9]{1,4}\r?\n([A-Za-z0-9+/=\r\n]{30,})"),
    rule(
        &["ssh2 encrypted private key", "ssh2 private key"],
        r"---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----([A-Za-z0-9+/=\s:.\x22()@_-]{30,}?)---- END",
    ),
    // Headers of requests, and commands that send them.
    scrambled(
        &["authorization"],
        r#"(?i)\bauthorization["'`]{0,2}\s{0,3}[:=]\s{0,3}["'`]{0,2}(?:basic|bearer|token|apikey|api-key|digest|negotiate|aws4-hmac-sha256)\s{1,3}([\w=~@.+/%:-]{8,})"#,
    ),
    scrambled(&["bearer "], r"(?i)\bbearer\s{1,3}([\w~+/.-]{20,}={0,2})"),
    scrambled(
        &["x-api-key", "api-key", "x-auth-token", "private-token", "x-vault-token", "x-access-token"],
        r#"(?i)\b(?:x-api-key|api-key|x-auth-token|private-token|job-token|x-vault-token|x-access-token|x-[a-z]{2,20}-(?:key|token))["'`]{0,2}\s{0,3}:\s{0,3}["'`]{0,2}([\w=~@.+/-]{8,})"#,
    ),
    password(&["curl"], r#"\bcurl\b[^\n]{0,200}?\s(?:-u|--user)[ =]?["']?[\w.@+-]{1,100}:([^\s"']{4,})"#),
    password(&["sshpass"], r#"\bsshpass\s+-p\s*["']?([^\s"']{4,})"#),
    password(
        &["://"],
        r#"(?i)\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@?#"'<>`]{0,100}:([^\s/@?#"'<>`]{3,200})@[\w.\[-]"#,
    ),
    password(&["identified by"], r#"(?i)\bidentified\s+by\s+["']([^\s"']{4,})["']"#),
    scrambled(
        &["_authtoken", "_auth", "_password"],
        r#"(?i)\b_(?:authToken|auth|password)\s{0,3}=\s{0,3}["']?([A-Za-z0-9+/=_.-]{12,})"#,
    ),
    password(
        &["convertto-securestring"],
        r#"(?i)\bConvertTo-SecureString\s+(?:-String\s+)?["']([^"'\n]{4,100})["']\s+-AsPlainText"#,
    ),
    password(&["machine "], r"(?i)\bmachine\s+[\w.-]{1,100}\s+login\s+\S{1,100}\s+password\s+(\S{4,})"),
];

/// Formats that only the provider's name before an assignment tells from other text: `MAPBOX_KEY=…`, `"twitch": "…"`.
/// A name, and the pattern of the value.
pub(super) const NAMED: &[(&str, &str)] = &[
    ("adafruit", "[a-z0-9_-]{32}"),
    ("adobe", "[a-f0-9]{32}"),
    ("airtable", "[a-z0-9]{17}"),
    ("algolia", "[a-z0-9]{32}"),
    ("alibaba", "[a-z0-9]{30}"),
    ("asana", "[a-z0-9]{32}"),
    ("atlassian", "[a-z0-9]{24}"),
    ("aws", "[a-z0-9/+]{40}"),
    ("azure", "[a-z0-9+/_~.-]{40,88}={0,2}"),
    ("beamer", "b_[a-z0-9=_-]{44}"),
    ("bitbucket", "[a-z0-9=_-]{32}|[a-z0-9=_-]{64}"),
    ("bittrex", "[a-z0-9]{32}"),
    ("cloudflare", "[a-z0-9_-]{40}|[a-f0-9]{37}"),
    ("codecov", "[a-z0-9]{32}"),
    ("cohere", "[a-z0-9]{40}"),
    ("coinbase", "[a-z0-9_-]{64}"),
    ("confluence", "[a-z0-9]{24}"),
    ("confluent", "[a-z0-9]{16}|[a-z0-9]{64}"),
    ("contentful", "[a-z0-9=_-]{43}"),
    ("datadog", "[a-z0-9]{40}|[a-f0-9]{32}"),
    ("discord", "[a-f0-9]{64}|[a-z0-9=_-]{32}"),
    ("droneci", "[a-z0-9]{32}"),
    ("dropbox", "[a-z0-9]{15}|sl\\.[a-z0-9=_-]{100,}|[a-z0-9]{11}AAAAAAAAAA[a-z0-9=_-]{43}"),
    ("etsy", "[a-z0-9]{24}"),
    ("facebook", "[a-f0-9]{32}"),
    ("fastly", "[a-z0-9=_-]{32}"),
    ("finicity", "[a-f0-9]{32}|[a-z0-9]{20}"),
    ("finnhub", "[a-z0-9]{20}"),
    ("flickr", "[a-z0-9]{32}"),
    ("freshbooks", "[a-z0-9]{64}"),
    ("gitter", "[a-z0-9_-]{40}"),
    ("gocardless", "live_[a-z0-9=_-]{40}"),
    ("heroku", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("hubspot", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("intercom", "[a-z0-9=_-]{60}"),
    ("jfrog", "[a-z0-9]{64}|[a-z0-9]{73}"),
    ("jira", "[a-z0-9]{24}"),
    ("kraken", "[a-z0-9/=_+-]{80,90}"),
    ("kucoin", "[a-f0-9]{24}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("launchdarkly", "[a-z0-9=_-]{40}"),
    ("linear", "[a-f0-9]{32}"),
    ("linkedin", "[a-z0-9]{16}"),
    ("lob", "(?:live|test)_[a-f0-9]{35}"),
    ("mattermost", "[a-z0-9]{26}"),
    ("meraki", "[0-9a-f]{40}"),
    ("messagebird", "[a-z0-9]{25}"),
    ("netlify", "[a-z0-9=_-]{40,46}"),
    ("newrelic", "[a-z0-9]{64}"),
    ("nytimes", "[a-z0-9=_-]{32}"),
    ("okta", "00[\\w=-]{40}"),
    ("openweather", "[a-f0-9]{32}"),
    ("plaid", "[a-z0-9]{24}|[a-z0-9]{30}"),
    ("rapidapi", "[a-z0-9_-]{50}"),
    ("sendbird", "[a-f0-9]{40}"),
    ("sentry", "[a-f0-9]{64}"),
    ("snyk", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("sonar", "[a-z0-9=_-]{40}"),
    ("sourcegraph", "[a-f0-9]{40}"),
    ("squarespace", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    ("stripe", "[a-z0-9]{32}"),
    ("sumo", "[a-z0-9]{64}"),
    ("telegram", "[0-9]{5,16}:A[a-z0-9_-]{34}"),
    ("totp", "[a-z2-7]{16,64}=*"),
    ("travis", "[a-z0-9]{22}"),
    ("trello", "[a-f0-9]{32}|[a-f0-9]{64}"),
    ("twilio", "[a-f0-9]{32}"),
    ("twitch", "[a-z0-9]{30}"),
    ("twitter", "[a-z0-9]{45}|[a-z0-9]{50}|[a-z0-9]{25}|[0-9]{15,25}-[a-z0-9]{20,40}"),
    ("zendesk", "[a-z0-9]{40}"),
];
