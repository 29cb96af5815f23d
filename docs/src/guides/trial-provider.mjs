// A provider for a trial: provider.mjs ISSUER PORT. It lets in the people below, with any password.
import { generateKeyPairSync } from "node:crypto";
import Provider from "oidc-provider";

const [issuer, port] = process.argv.slice(2);
const groups = { anna: ["staff"], ben: ["staff"], cora: [] };
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const claims = (id) => ({ email: `${id}@example.org`, groups: groups[id] });

const provider = new Provider(issuer, {
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid: `key ${Date.now()}`, use: "sig", alg: "RS256" }] },
  scopes: ["openid", "offline_access"],
  pkce: { required: () => true },
  findAccount: (_, id) => groups[id] && { accountId: id, claims: () => ({ sub: id, ...claims(id) }) },
  extraTokenClaims: (_, token) => claims(token.accountId),
  features: {
    devInteractions: { enabled: true }, // the pages that ask for a name and for consent
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: "notes:read notes:write notes:admin",
        audience: resource,
        accessTokenTTL: 900,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
});
provider.proxy = true; // Host and X-Forwarded-Proto are those of the proxy
provider.listen(Number(port), "127.0.0.1", () => console.log(`the provider ${issuer} runs`));
