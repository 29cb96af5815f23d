//! Tests secret detection: what counts as a secret, and what only resembles one. All keys are made here, so that no
//! scanner finds one in the repository.

use sidenote::secrets::{REDACTED, without_secrets};

use crate::support::ends;

/// Makes the same characters on each run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn next(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % sides
    }

    /// Fills a form: `%w36` is 36 letters and digits, and `%%` a percent sign. The letters name alphabets, and an
    /// exclamation mark may end the count.
    pub(crate) fn fill(&mut self, form: &str) -> String {
        const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
        const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        const DIGITS: &str = "0123456789";
        let mut out = String::new();
        let mut rest = form.chars().peekable();
        while let Some(c) = rest.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let kind = rest.next().unwrap();
            if kind == '%' {
                out.push('%');
                continue;
            }
            let alphabet = match kind {
                'w' => [LOWER, UPPER, DIGITS].concat(),
                'l' => [LOWER, DIGITS].concat(),
                'u' => [UPPER, DIGITS].concat(),
                'b' => [LOWER, UPPER, DIGITS, "-_"].concat(),
                'B' => [LOWER, UPPER, DIGITS, "+/"].concat(),
                'h' => "0123456789abcdef".to_owned(),
                'H' => "0123456789ABCDEF".to_owned(),
                'd' => DIGITS.to_owned(),
                'a' => LOWER.to_owned(),
                'A' => UPPER.to_owned(),
                '2' => [UPPER, "234567"].concat(),
                '3' => [LOWER, "234567"].concat(),
                '5' => "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz".to_owned(),
                'z' => "qpzry9x8gf2tvdw0s3jn54khce6mua7l".to_owned(),
                'q' => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".to_owned(),
                other => panic!("no alphabet {other}"),
            };
            let alphabet: Vec<char> = alphabet.chars().collect();
            let mut count = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                count.push(digit);
            }
            rest.next_if_eq(&'!');
            for _ in 0..count.parse::<usize>().unwrap() {
                out.push(alphabet[self.next(alphabet.len())]);
            }
        }
        out
    }
}

/// Formats of keys: the public part, and the secret between `«` and `»`.
const KEYS: &[&str] = &[
    "«sk-%w48»",
    "OPENAI_API_KEY=«sk-proj-%b74!T3BlbkFJ%b74»",
    "«sk-ant-api03-%b93!AA»",
    "«sk-ant-admin01-%b93!AA»",
    "«sk-or-v1-%h64»",
    "«hf_%w34»",
    "«r8_%w37»",
    "«gsk_%w52»",
    "«xai-%w80»",
    "«pplx-%w48»",
    "«nvapi-%b64»",
    "«tvly-dev-%w32»",
    "«ghp_%w36»",
    "«gho_%w36»",
    "«ghs_%w36»",
    "«ghu_%w36» and «ghr_%w36»",
    "«github_pat_%w22!_%w59»",
    "«glpat-%b20»",
    "«gldt-%b20»",
    "«glrt-%b20»",
    "«glptt-%h40»",
    "«GR1348941%b20»",
    "«ATATT3xFfGF0%b180»",
    "«npm_%w36»",
    "«pypi-AgEIcHlwaS5vcmc%b90»",
    "«rubygems_%h48»",
    "«dckr_pat_%b27»",
    "«AKCp%w69»",
    "«sgp_%h16!_%h40»",
    "«squ_%h40»",
    "«AKIA%216»",
    "«ASIA%216»",
    "aws_secret_access_key = «%B40»",
    "AWS_SECRET_ACCESS_KEY=«%B40»",
    "\"SecretAccessKey\": \"«%B40»\"",
    "«ABSK%w120»",
    "«amzn.mws.%h8!-%h4!-%h4!-%h4!-%h12»",
    "«AIza%b35»",
    "«ya29.%b80»",
    "«GOCSPX-%b28»",
    "refresh: «1//0%b60»",
    "«%w3!8Q~%b34»",
    "AccountName=x;AccountKey=«%B86!==»;EndpointSuffix=core.windows.net",
    "Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=«%B43!=»",
    "https://x.blob.core.windows.net/c/b?sv=2024-11-04&se=2026-12-31&sr=b&sp=r&sig=«%w43!%%3D»",
    "SharedAccessSignature=sv=2024-11-04&ss=b&srt=s&sp=rl&sig=«%w40!xyz%%3D»",
    "«LTAI%w20»",
    "«dop_v1_%h64»",
    "«doo_v1_%h64»",
    "«dor_v1_%h64»",
    "«dapi%h32»",
    "«hvs.%b96»",
    "«hvb.%b140»",
    "«%w14!.atlasv1.%b64»",
    "«HRKU-AA%b58»",
    "«fo1_%b43»",
    "«v1.0-%h24!-%h146»",
    "«pul-%h40»",
    "«pscale_tkn_%b43»",
    "«pscale_pw_%b43»",
    "«sbp_%h40»",
    "«sb_secret_%b22!_%w8»",
    "«nfp_%w36»",
    "«tskey-auth-%w12!CNTRL-%w32»",
    "«sk_live_%w24»",
    "«rk_test_%w24»",
    "«whsec_%w32»",
    "«sq0atp-%b22»",
    "«sq0csp-%b43»",
    "«EAAA%b60»",
    "«shpat_%h32»",
    "«shpca_%h32»",
    "«shppa_%h32»",
    "«shpss_%h32»",
    "«access-production-%h8!-%h4!-%h4!-%h4!-%h12»",
    "«shippo_live_%h40»",
    "«EZAK%w54»",
    "«rzp_live_%w14»",
    "«xoxb-%d12!-%d12!-%w24»",
    "«xoxp-%d12!-%d12!-%d12!-%h32»",
    "«xoxe.xoxp-1-%w160»",
    "«xapp-1-A%u10!-%d13!-%h64»",
    "https://hooks.slack.com/services/«T%u10!/B%u10!/%w24»",
    "https://discord.com/api/webhooks/«%d19!/%b68»",
    "bot «MT%w22!.G%b5!.%b38»",
    "telegram «%d10!:AA%b33»",
    "«SG.%b22!.%b43»",
    "«key-%h32»",
    "mailgun signs with «%h32!-%h8!-%h8»",
    "«%h32!-us14»",
    "«xkeysib-%h64!-%w16»",
    "«re_%w8!_%w24»",
    "«SK%h32»",
    "TWILIO_AUTH_TOKEN=«%h32»",
    "twilio_token: «%h32»",
    "«EAAC%w120»",
    "«glc_%w80»",
    "«glsa_%w32!_%h8»",
    "«sntryu_%h64»",
    "«NRAK-%u27»",
    "«dt0c01.%u24!.%u64»",
    "«phx_%w43»",
    "«PMAK-%h24!-%h34»",
    "«lin_api_%w40»",
    "«ntn_%d11!%w35»",
    "«figd_%b40»",
    "«pat%w14!.%h64»",
    "«pat-na1-%h8!-%h4!-%h4!-%h4!-%h12»",
    "«rdme_%l70»",
    "«dp.pt.%w43»",
    "«ops_eyJ%w260»",
    "«A3-%u6!-%u11!-%u5!-%u5!-%u5»",
    "«AGE-SECRET-KEY-1%q58»",
    "otpauth://totp/Example:alice?secret=«%232»&issuer=Example",
    "TOTP secret: «%232»",
    "«eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI%w24!.%b43»",
    "«xprv%5107»",
    "«nsec1%z58»",
    "wg PrivateKey = «%B42!A=»",
    "«MIIEpAIBAAKCAQEA%B200»",
    "Authorization: Bearer «%b40»",
    "Authorization: Basic «dXNlcjpwYXNz%w12!==»",
    "authorization: token «%h40»",
    "curl -H \"X-Api-Key: «%w32»\" https://example.org",
    "PRIVATE-TOKEN: «%b20»",
    "curl -u alice:«%w14» https://example.org/x",
    "sshpass -p «%w12» ssh host",
    "api_key = \"«%w32»\"",
    "apiKey: '«%h32»'",
    "\"api_key\": \"«%l40»\"",
    "export API_TOKEN=«%w40»",
    "client_secret=«%b40»",
    "secret_key: «%w50»",
    "auth_token = `«%h40»`",
    "access_token: \"«%b64»\"",
    "?access_token=«%b64»&x=1",
    "token = «%h8!-%h4!-%h4!-%h4!-%h12»",
    "ENCRYPTION_KEY=«%h64»",
    "SECRET_KEY_BASE=«%h128»",
    "DB_PASSWORD=«%w12»",
    "DB_PASSWORD=«hunter2»",
    "POSTGRES_PASSWORD: \"«%w9!!x9»\"",
    "password: «%w12!9a»",
    "pass: «%w12!9a»",
    "DB_PASS=«%w12»",
    "DB_PASS_PROD=«%w12»",
    "passcode: «%w12!9a»",
    "password = '«S3cure!pass»'",
    "**password**: «%w12!9a»",
    "**Password:** «%w12!9a»",
    "- *password*: «%w12!9a»",
    "| password | «%w12!9a» |",
    "{\"user\": \"alice\", \"password\": \"«correcthorse»\"}",
    "PGPASSWORD=«%w10» psql",
    "MYSQL_ROOT_PASSWORD=«%a10»",
    "Passwort: «%w10!7q»",
    "postgres://app:«%w16»@db.example.org:5432/app",
    "mongodb+srv://alice:«%w16»@cluster0.example.net/x",
    "redis://:«%w20»@cache:6379/0",
    "https://alice:«%w14»@example.org/repo.git",
    "amqp://guest1:«%w9»@broker//",
    "tool --password «%w10!1a» --verbose",
    "tool --api-key=«%w32»",
    "ALTER USER x IDENTIFIED BY '«%w10»'",
    "//registry.npmjs.org/:_authToken=«%h8!-%h4!-%h4!-%h4!-%h12»",
    "machine api.example.org login alice password «%w12»",
    "HEROKU_API_KEY=«%h8!-%h4!-%h4!-%h4!-%h12»",
    "datadog_api_key: «%h32»",
    "cloudflare_api_token = \"«%b40»\"",
    "MAILCHIMP_KEY=«%h32!-us21»",
    "ALGOLIA_ADMIN_KEY=«%h32»",
    "sentry_auth: «%h64»",
    "okta_token = «00%b40»",
    "twitter_bearer: «AAAAAAAAAAAAAAAAAAAAAA%w80»",
    "NETLIFY_AUTH_TOKEN=«%b43»",
    "travis: «%w22»",
    "ConvertTo-SecureString \"«P@ss%w8»\" -AsPlainText -Force",
    "the key is «%w40»",
    "token «%b43»",
];

/// Finds how many forms are found, and names those that are not.
fn missed() -> (usize, Vec<String>) {
    let mut dice = Dice(0x5EED_1234_ABCD_0001);
    let (mut count, mut missed) = (0, Vec::new());
    for form in KEYS {
        // Each in several surroundings: alone, in prose, in a list, in code.
        for around in ["{}", "We use {} for now.", "- key: x\n- {}\n", "```\n{}\n```"] {
            let filled = dice.fill(form);
            let text = around.replace("{}", &filled);
            let secrets: Vec<&str> =
                text.split('«').skip(1).map(|part| part.split('»').next().unwrap()).collect();
            assert!(!secrets.is_empty(), "{form}");
            let plain = text.replace(['«', '»'], "");
            let (kept, found) = without_secrets(&plain);
            count += 1;
            if found < secrets.len() || secrets.iter().any(|secret| kept.contains(secret)) {
                missed.push(format!("{form}: {kept}"));
            }
        }
    }
    (count, missed)
}

#[test]
fn keys_of_known_formats_are_redacted() {
    let (count, missed) = missed();
    assert!(KEYS.len() >= 150 && count == 4 * KEYS.len());
    let share = 1.0 - missed.len() as f64 / count as f64;
    crate::support::say(&format!("{:.2} % of {count} keys are found; missed: {missed:#?}", 100.0 * share));
    assert!(share >= 0.98, "{missed:#?}");
}

/// What looks like a key and is none.
const LOOK_ALIKES: &[&str] = &[
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ%B350 alice@example.org",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI%B43 alice@host",
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTY%B90 host",
    "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29t%B60 yubikey",
    "SHA256:%B43 alice@host (ED25519)",
    "MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl%B54\n%B64\n%B64\n%B30==\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A%B32\n%B64\n%B20\n-----END PUBLIC KEY-----",
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmQINBF%B58\n%B64\n=%B4\n-----END PGP PUBLIC KEY BLOCK-----",
    "-----BEGIN PGP SIGNATURE-----\n\niQIzBAAB%B56\n%B64\n-----END PGP SIGNATURE-----",
    "-----BEGIN CERTIFICATE REQUEST-----\n%B64\n%B64\n-----END CERTIFICATE REQUEST-----",
    "-----BEGIN SSH SIGNATURE-----\nU1NIU0lHAAAAAQ%B50\n%B64\n-----END SSH SIGNATURE-----",
    "-----BEGIN CERTIFICATE-----\n%B64\n%B64\nno end",
    "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA%B64",
    "untrusted comment: minisign public key %H16\nRWQ%B53",
    "age1%z58",
    "[Peer]\nPublicKey = %B42!A=\nAllowedIPs = 10.0.0.2/32",
    "The public key is %B42!A=",
    "npub1%z58",
    "xpub%5107",
    "Fingerprint: %H4 %H4 %H4 %H4 %H4  %H4 %H4 %H4 %H4 %H4",
    "Key fingerprint = %H40",
    "Qm%544",
    "ipfs://Qm%544/readme",
    "bafybeig%351",
    "12D3KooW%544",
    "zdj7%545",
    "VGhlIHF1aWNrIGJyb3duIGZveCBqdW1wcyBvdmVyIHRoZSBsYXp5IGRvZy4=",
    "eyJuYW1lIjoiSGVyb24iLCJraW5kIjoiYmlyZCIsImxlZ3MiOjJ9",
    "R3LDvMOfZSBhdXMgZGVtIEdhcnRlbiwgd28gZGVyIFJlaWhlciBicsO8dGV0IQ==",
    "aVZCT1J3MEtHZ28gaXMgdGhlIGJlZ2lubmluZyBvZiBhIHBpY3R1cmU=",
    "data:font/woff2;base64,d09GMgABAAAAA%B200",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB%B120",
    "/9j/4AAQSkZJRgABAQAAAQABAAD%B90",
    "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7",
    "Content-Transfer-Encoding: base64\n\n%B76\n%B76\n%B76\n%B40==",
    "%B60\n%B60\n%B60\n",
    "id: %h8!-%h4!-4%h3!-a%h3!-%h12",
    "%h8!-%h4!-4%h3!-a%h3!-%h12",
    "The key of the row is %h8!-%h4!-4%h3!-a%h3!-%h12.",
    "{%H8!-%H4!-%H4!-%H4!-%H12}",
    "commit %h40",
    "git checkout %h40",
    "`%h7`, `%h12` and `%h40`",
    "sha256: %h64",
    "sha256:%h64",
    "ubuntu@sha256:%h64",
    "md5 %h32",
    "blake3 %h64  file.bin",
    "sha512-%B86!==",
    "sha384-%B64",
    "integrity=\"sha384-%B64\"",
    "github.com/x/y v1.2.3 h1:%B43!=",
    "checksum = \"%h64\"",
    "\"integrity\": \"sha512-%B86!==\"",
    "ETag: \"%h32\"",
    "0x%h40",
    "0x%h64",
    "0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045",
    "0x%H32!%h32",
    "1%533",
    "3%533",
    "bc1q%z38",
    "txid %h64",
    "https://example.org/a/b/%w40?utm_source=x&utm_campaign=%w20",
    "https://docs.google.com/document/d/%b44/edit#heading=h.%l12",
    "https://drive.google.com/file/d/%b33/view?usp=sharing",
    "https://www.youtube.com/watch?v=%b11&list=PL%b32",
    "https://example.org/?fbclid=IwAR0%b55",
    "https://medium.com/@alice/a-long-title-of-a-post-%h12",
    "https://www.amazon.de/dp/B0%u8/ref=sr_1_1?crid=%u13&dib=%b60",
    "https://maps.google.com/maps/place/data=!4m6!3m5!1s0x%h16!:0x%h16",
    "![[Pasted image 20240101123456.png]] and [[2024-01-01T10:00:00Z Meeting]]",
    "[a](https://cdn.example.org/%h32/%h32.jpg)",
    "![x](data:image/png;base64,%B200)",
    "https://user@example.org/path",
    "http://localhost:8080/@alice/x",
    "postgres://user:password@localhost/db",
    "postgres://$USER:$PASS@localhost/db",
    "https://<user>:<token>@example.org",
    "postgres://${DB_USER}:${DB_PASSWORD}@db/x",
    "password: required",
    "Password: see the safe in the office",
    "The password is never stored.",
    "password = getpass.getpass()",
    "password = os.environ[\"DB_PASSWORD\"]",
    "DB_PASSWORD=$DB_PASSWORD",
    "DB_PASSWORD=${DB_PASSWORD}",
    "DB_PASSWORD=<your password>",
    "DB_PASSWORD=changeme",
    "password: string",
    "\"password\": \"password\"",
    "\"password\": \"string\"",
    "| Password | Description |",
    "**Password**: required",
    "PASSWORD=********",
    "password: xxxxxxxxxx",
    "api_key = \"YOUR_API_KEY\"",
    "api_key = \"your-api-key-here\"",
    "api_key: ${{ secrets.API_KEY }}",
    "API_KEY=$(cat key.txt)",
    "token = get_token(user)",
    "token: Token = self.tokenizer.next_token()",
    "let token = parser.peek_token2()",
    "token_count: 128000",
    "max_tokens = 4096",
    "key: value",
    "key = \"Projects/2024/Meeting-Notes\"",
    "primary_key: user_id_2024_index",
    "keyboard: model-m-1391401-layout-us",
    "access: public, since 2024-01-01",
    "access = \"read-write-execute-2024\"",
    "api: https://api.example.org/v2/things",
    "api_version: 2024-11-04-preview",
    "author: alice-2024-the-second",
    "PublicKeyToken=b77a5c561934e089",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer ${{ secrets.GITHUB_TOKEN }}",
    "the bearer of the authorization must sign",
    "Authorization: required for all endpoints",
    "curl -u user:password https://example.org",
    "curl -u \"$USER:$TOKEN\" https://example.org",
    "tool --password \"$PASSWORD\" --token <token>",
    "tool --password-file /run/secrets/db",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "a `ghp_` token, an `sk-` key, `AKIA` ids and `xoxb-` tokens",
    "sk-learn-pipeline-notes-2024",
    "[[sk-learn-pipeline-notes]] and sk-learn-pipeline-notes",
    "task-force-sk-ip-2024-review-of-the-year",
    "the hvs. and s. prefixes of tokens",
    "ThisIsALongCamelCaseNameOfAClassInJavaWithoutANumber",
    "MyVeryLongFunctionNameThatConvertsUtf8To16ForWindows",
    "AbstractSingletonProxyFactoryBean2FactoryFactoryImpl3",
    "a_long_snake_case_name_of_a_test_that_counts_to_100_and_back",
    "a-long-kebab-case-name-of-a-branch-2024-11-23-with-a-date",
    "Projects/2024/Q1/Meeting-Notes-With-Alice-And-Bob",
    "src/index/bm25/inverter.rs:120:33: warning: unused",
    "/home/alice/.cargo/registry/src/index.crates.io-%h16/serde-1.0.0",
    "C:\\Users\\Alice\\AppData\\Local\\Temp\\%h8",
    "2024-01-01T10:00:00.123456789+01:00[Europe/Berlin]",
    "+49 30 901820, 0800-1234567, ISBN 978-3-16-148410-0",
    "IBAN DE89 3704 0044 0532 0130 00",
    "DE89370400440532013000",
    "4111 1111 1111 1111",
    "GTIN 04006381333931",
    "3.14159265358979323846264338327950288419716939937510",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "----------------------------------------",
    "========================================",
    "| --- | :---: | ---: |",
    "\\\\frac{a}{b} \\\\sum_{i=0}^{n} x_i^2",
    "Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen",
    "タイトル：鍵を変更する。トークンは使わない",
    "密码：请参阅手册。密钥不得保存在此处",
    "Пароль: смотри в сейфе; ключ: у Алисы",
    "The token budget of recall is 2000, the key idea is simple: fewer words.",
    "She keeps the secret: nobody knows that it was 1984-style surveillance.",
    "#project/2024 #token-economy #secret-santa-2024",
    "^block-id-2024 [^note1] %%%%comment%%%%",
    "rustc 1.95.0 (%h9 2026-11-01)",
    "x86_64-unknown-linux-gnu-1.95.0-nightly-2026-11-01",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)",
    "Passed: 2024-05-01, passport: C01X%u6",
    "Passage: chapter12verse5, passenger: seat12A4",
    "passes: 12of14tests, passing: 4.0/6.0",
    "M8 6v12l10-6zM2.5 3.1L20.123 44.5C1.2,3.4 5.6,7.8 9.10,11.12Z",
];

#[test]
fn text_that_resembles_a_key_is_kept() {
    assert!(LOOK_ALIKES.len() >= 150);
    let mut dice = Dice(0x0DD_5EED_7777);
    let (mut count, mut lost) = (0, Vec::new());
    for form in LOOK_ALIKES {
        for around in ["{}", "We saw {} there.", "- {}\n- next\n"] {
            // A frame of lines is one only where it begins a line.
            if form.contains('\n') && around != "{}" {
                continue;
            }
            let text = around.replace("{}", &dice.fill(form));
            let (kept, found) = without_secrets(&text);
            count += 1;
            if found > 0 {
                lost.push(format!("{form}: {kept}"));
            }
        }
    }
    let share = lost.len() as f64 / count as f64;
    crate::support::say(&format!("{:.2} % of {count} look-alikes are lost: {lost:#?}", 100.0 * share));
    assert!(share <= 0.01, "{lost:#?}");
}

#[test]
fn private_key_blocks_are_redacted_whole() {
    let mut dice = Dice(0xB10C_B10C);
    let labels = ["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA "];
    for label in labels {
        let text = dice.fill(&format!(
            "before\n-----BEGIN {label}PRIVATE KEY-----\n%B64\n%B64\n%B30==\n-----END {label}PRIVATE KEY-----\nafter"
        ));
        assert_eq!(without_secrets(&text).0, format!("before\n{REDACTED}\nafter"), "{label}");
    }
    let pgp = "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v1.4.11 (GNU/Linux)\n\n%B64\n%B64\n=%B4\n-----END PGP PRIVATE KEY BLOCK-----";
    assert_eq!(without_secrets(&dice.fill(pgp)).0, REDACTED);
    let escaped = "\"-----BEGIN PRIVATE KEY-----\\n%B64\\n%B64\\n-----END PRIVATE KEY-----\\n\"";
    assert_eq!(without_secrets(&dice.fill(escaped)).0, format!("\"{REDACTED}\\n\""));
    let cut_off =
        "x\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n%B64\n%B64\n\nWords again, with dots.";
    assert_eq!(without_secrets(&dice.fill(cut_off)).0, format!("x\n{REDACTED}\n\nWords again, with dots."));
    // A public block after it is another block.
    let both = "-----BEGIN PRIVATE KEY-----\n%B64\n-----END PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\n%B64\n-----END CERTIFICATE-----\n";
    let both = dice.fill(both);
    let kept = without_secrets(&both);
    assert!(kept.1 == 1 && kept.0.contains("-----BEGIN CERTIFICATE-----\n"), "{kept:?}");
}

/// Makes text of words that hold many keywords of the rules, and no secret.
fn words(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 100);
    let mut dice = Dice(0x303_0303);
    let known = [
        "token",
        "secret",
        "key-",
        "sk-",
        "the",
        "heron",
        "password",
        "://",
        "bearer ",
        "curl",
        "ey",
        "-----BEGIN ",
    ];
    while text.len() < bytes {
        text.push_str(known[dice.next(known.len())]);
        text.push_str(&dice.fill(" %a5 %a7"));
        text.push(if dice.next(12) == 0 { '\n' } else { ' ' });
    }
    text
}

#[test]
fn a_key_after_a_megabyte_of_text_is_found() {
    let mut dice = Dice(0xFA57);
    let cases: [fn(usize) -> String; 5] = [
        words,
        |bytes| "word ".repeat(bytes / 5),
        |bytes| "a".repeat(bytes) + " ",
        |bytes| "-----BEGIN PRIVATE KEY\n".repeat(bytes / 23),
        |bytes| "x=\n".repeat(bytes / 3),
    ];
    let mut found = 0;
    for (at, make) in cases.into_iter().enumerate() {
        let text = make(1_000_000) + &dice.fill("\nghp_%w36\n");
        let expected = text[..text.rfind("ghp_").unwrap()].to_owned() + "[redacted]\n";
        // A search that is not linear would take hours.
        let (kept, count) = ends(&format!("case {at}"), move || {
            let (kept, count) = without_secrets(&text);
            (kept.into_owned(), count)
        });
        assert!(kept == expected && count == 1, "case {at}: {count} redactions");
        found += count;
    }
    assert_eq!(found, 5);
}

/// Counts the redactions in the Markdown below the folder that `SIDENOTE_TEST_MARKDOWN` names.
#[test]
#[ignore = "it needs SIDENOTE_TEST_MARKDOWN, a folder of Markdown"]
fn few_real_notes_are_redacted() {
    let folder = crate::support::env_path("SIDENOTE_TEST_MARKDOWN");
    let (mut files, mut hit, mut all) = (0, 0, 0);
    for entry in walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap) {
        if entry.path().extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(entry.path()) else { continue };
        let (kept, found) = without_secrets(&text);
        files += 1;
        hit += usize::from(found > 0);
        all += found;
        if found > 0 {
            for (old, new) in text.lines().zip(kept.lines()) {
                if old != new {
                    crate::support::say(&format!(
                        "{}: {}",
                        entry.path().display(),
                        old.chars().take(200).collect::<String>()
                    ));
                    break;
                }
            }
        }
    }
    crate::support::say(&format!("{all} redactions in {hit} of {files} files"));
    assert!(files > 0 && hit * 100 <= files, "{hit} of {files} files lost something");
}
