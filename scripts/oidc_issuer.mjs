// An OpenID Connect provider (oidc-provider, certified) for scripts/oidc-flow. Prints its URL when it listens.
// usage: node oidc_issuer.mjs PACKAGES_FOLDER PORT RESOURCE TOKEN_SECONDS
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [, , packages, port, resource, seconds] = process.argv;
const require = createRequire(pathToFileURL(`${packages}/package.json`));
const { default: Provider } = await import(pathToFileURL(require.resolve('oidc-provider')));

const issuer = `http://127.0.0.1:${port}`;
const scopes = 'tools:call other';
const provider = new Provider(issuer, {
    clients: [
        {
            client_id: 'editor', application_type: 'native', token_endpoint_auth_method: 'none',
            redirect_uris: ['http://127.0.0.1/callback'], grant_types: ['authorization_code', 'refresh_token'],
        },
        {
            client_id: 'robot', client_secret: 'a-secret-of-the-robot-only-here', redirect_uris: [], response_types: [],
            grant_types: ['client_credentials'],
        },
    ],
    issueRefreshToken: async () => true,
    pkce: { required: () => true },
    features: {
        clientCredentials: { enabled: true },
        resourceIndicators: {
            enabled: true,
            defaultResource: () => resource,
            useGrantedResource: () => true,
            getResourceServerInfo: (_, wanted) => ({
                scope: scopes, audience: wanted, accessTokenTTL: Number(seconds), accessTokenFormat: 'jwt',
                jwt: { sign: { alg: 'RS256' } },
            }),
        },
    },
});
provider.listen(Number(port), '127.0.0.1', () => console.log(`issuer at ${issuer}`));
