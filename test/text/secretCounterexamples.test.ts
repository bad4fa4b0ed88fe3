import { describe, expect, it } from 'vitest'
import { findSecrets } from '../../src/text/secrets.ts'

/** Texts close to a known form that have no secret. */
const cases: Readonly<Record<string, readonly string[]>> = {
  'a comparison with another variable': [
    'assert password == expected1',
    'if (password === input2) {',
    'return user_password == hash1;',
    'while (pwd == guess99) {',
    'assert token == expected_token_of_user1',
  ],
  'another name that ends like one of a password': [
    'bypass = "route1"',
    'renderPass: "opaque1"',
    'isCompass = "north12"',
    'userPassed: "abc12"',
    'vault login -method=userpass username=ann12345',
  ],
  'a name that begins like a key': ['rnd_generateRandomNumbersForTests', 'rnd_seedForTestCasesInTheModule12'],
  'a command without a secret': [
    'ENV PATH /usr/local/bin',
    'ENV TOKEN is required here',
    'ENV DB_PASSWORD $DB_PASSWORD',
    'ARG NPM_TOKEN\nRUN npm ci',
    'docker run -e DB_PASSWORD postgres:18',
    'export TOKEN=$(vault read secret/a1)',
    'export SSH_PRIVATE_KEY=/home/ann/.ssh/id1',
    'DB_PASSWORD: required',
    'DB_PASSWORD: The password',
    'DB_PASSWORD: process.env.DB_PASSWORD2',
    'gh secret set NPM -b "$NPM_TOKEN"',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of a workflow, as text
    'gh secret set NPM --body "${{ secrets.NPM_1 }}"',
    'gh secret set NPM < token.txt',
    'Use `unzip -P`, `cqlsh -p`, `redis-cli -a`: or `gh secret set -b`.',
    'Instead of typing it (`zip -P`), use `openssl -passin pass:`',
    'net use Z: \\\\host\\share1 /persistent:yes',
    'net use Z: \\\\host\\share1 /user:ann *',
    'net user ann1 /delete',
    'the net user experience improves',
    'keytool -storepass:env STOREPASS1 -keystore a1',
    'xfreerdp /v:host1 /u:ann',
    'vault kv put secret/app1 @data1.json user=ann cert=@cert1.pem',
    'fly secrets set CALLBACK=https://example.org/a1',
    'heroku config:set NODE_ENV=production PORT=3000 STACK=heroku-22 BUCKET=my-bucket-eu2',
    'kubectl create secret generic db --from-file=key1=./a1.pem',
    'docker secret create name1 ./file1',
    'echo "$TOKEN" | wrangler secret put NAME',
    'vault login -method=oidc role=dev12345',
    'curl -b cookies1.txt -c cookies2.txt https://example.org',
    'git checkout -b session=feature1',
  ],
  'a call without a password': [
    'auth=(user, password1)',
    "auth=('user', os.environ['PASSWORD1'])",
    "smtp.login('user', 'your-password')",
    "smtp.login(user, 'Sign in')",
    "passport.login('local', { session: 1 })",
  ],
  'a path, a signature or a number': [
    'a path = "abcdefghijklmnopqrstuvwxyz012345abcdefghijklmnopqrstuvwxyz"',
    'X-Amz-SignedHeaders=host&X-Amz-Date=20260101T000000Z',
    'sign(a, signature=abcdefghijabcdefghijabcdefghijabcdefghij12)',
    'token-type:bearer1',
    `xpub${'6DYxM4Re9u'.repeat(11)}`,
    'https://hook.eu1.make.com/your-hook',
    'user:password@tcp(db:3306)/app',
    'listen@tcp(10.0.0.1:80)',
  ],
  'a sentence about a password': [
    'the password is set to expire',
    'The password was changed to improve security',
    'the password is currently required.',
    'the creds are admin / user',
  ],
}

describe('findSecrets › text close to a known form', () => {
  for (const [name, texts] of Object.entries(cases))
    it.each(texts)(`ignores ${name}: %j`, (text) => expect(findSecrets(text)).toEqual([]))
})
