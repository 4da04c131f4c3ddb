"""Forms of commands, files of programs and statements: values in the next line, positional arguments, statements."""
# forms that are cut in two are read by nobody

from __future__ import annotations

from tests.privacy_forms.values import Form

_TEXTS: dict[tuple[str, str], list[str]] = {
    ("libpq", "app.py"): [
        'dsn = "host=db.local user=shop password=<<mixed>> dbname=shop"\n',
        'conn = psycopg.connect("dbname=shop password=<<strong>> host=10.0.0.3")\n',
        "conn = psycopg2.connect('user=u host=h port=5432 password=<<word>>')\n",
        'engine = create_engine("postgres://shop:<<mixed>>@db/shop")\n',
    ],
    ("libpq", "main.go"): [
        'dsn := "host=localhost user=gorm password=<<word>> dbname=gorm port=9920 sslmode=disable"\n',
        'db, err := sql.Open("postgres", "user=app password=<<mixed>> dbname=app")\n',
    ],
    ("bytes", "main.go"): [
        'var secretKey = []byte("<<key32>>")\n',
        'signingSecret := []byte("<<hex32>>")\n',
        'password := []byte("<<mixed>>")\n',
        'token, err := t.SignedString([]byte("<<key32>>"))\n',
    ],
    ("bytes", "app.rs"): [
        'let password = String::from("<<mixed>>");\n',
        'let api_key = Some("<<key32>>");\n',
        'let secret = Secret::new("<<key40>>");\n',
    ],
    ("bytes", "app.py"): [
        'password = SecretStr("<<mixed>>")\n',
        'SECRET_KEY = bytes.fromhex("<<hex64>>")\n',
        'key = base64.b64decode("<<base64>>")\n',
        'password = os.environ.get("DB_PASSWORD") or "<<mixed>>"\n',
    ],
    ("bytes", "app.js"): [
        'const secret = Buffer.from("<<key32>>");\n',
        'const password = process.env.DB_PASSWORD || "<<mixed>>";\n',
        'const apiKey = process.env.API_KEY ?? "<<key32>>";\n',
    ],
    ("positional", "send.py"): [
        'client = Client("AC" + sid, "<<hex32>>")\n',
        'client = Client(ACCOUNT, "<<hex32>>")\n',
        'twilio = TwilioClient("<<user>>", "<<hex32>>", "eu1")\n',
        'auth = tweepy.OAuthHandler("<<key20>>", "<<key40>>")\n',
        'mac = hmac.new(b"<<key32>>", body, "sha256")\n',
        'bot = TokenAuth("<<key40>>")\n',
    ],
    ("positional", "App.java"): [
        'Key key = Keys.hmacShaKeyFor("<<key64>>".getBytes());\n',
        'Twilio.init(SID, "x"); ApiClient c = new ApiClient("https://a", "<<key32>>");\n',
        'SecretKeySpec k = new SecretKeySpec("<<key32>>".getBytes(), "AES");\n',
    ],
    ("positional", "app.ts"): [
        'const client = new Client("<<user>>", "<<hex32>>");\n',
        'jwt.sign({ id }, "<<key32>>");\n',
        'const cipher = createCipheriv("aes-256-cbc", "<<key32>>", iv);\n',
    ],
    ("curl", "call.sh"): [
        "curl https://a.local/v1 \\\n  --user admin:<<mixed>> \\\n  -d x=1\n",
        "curl \\\n  -X POST \\\n  -u 'ci:<<word>>' https://a.local\n",
        "curl -sSu me:<<mixed>> https://a.local\n",
        'curl -H "X-Api-Key: <<hex32>>" https://a.local\n',
        'curl "https://a.local/v1?api_key=<<key32>>&x=1"\n',
        "curl --proxy-user u:<<word>> https://a.local\n",
    ],
    ("yaml", "config/app.yaml"): [
        "db:\n  password: |\n    <<mixed>>\n",
        "db:\n  password: >-\n    <<word>>\n",
        "db:\n  password:\n    <<mixed>>\n  user: a\n",
        'api_key:\n  "<<key32>>"\n',
        "secret: |-\n  <<key40>>\n",
    ],
    ("netrc", "setup.sh"): [
        "cat > ~/.netrc <<EOF\nmachine git.local\n  login ci\n  password <<word>>\nEOF\n",
        "cat >> $HOME/.netrc <<EOF\nmachine a.local login ci password <<mixed>>\nEOF\n",
        'echo "machine a.local login me password <<mixed>>" > ~/.netrc\n',
    ],
    ("command", "setup.sh"): [
        "aws configure set aws_secret_access_key <<key40>> --profile x\n",
        "aws configure set aws_secret_access_key <<key40>>\n",
        "npm config set //registry.local/:_authToken <<key20>>\n",
        "heroku config:set SECRET_KEY=<<key32>> -a shop\n",
        "git config --global github.token <<hex40>>\n",
        "kubectl create secret generic db --from-literal=password=<<mixed>>\n",
        'gh secret set DEPLOY --body "<<key32>>"\n',
        "fly secrets set DB_PASSWORD=<<mixed>>\n",
        "htpasswd -b -c .htpasswd admin <<mixed>>\n",
        "mongosh -u root -p <<mixed>> --host a\n",
        "ldapsearch -x -D cn=a -w <<mixed>> -b dc=a\n",
        "smbclient //srv/share -U bob%<<mixed>>\n",
        "keytool -genkey -keystore a.jks -storepass <<word>>\n",
        "sqlplus scott/<<mixed>>@db\n",
        "wget --http-user=a --http-password=<<mixed>> https://a.local\n",
    ],
    ("sas", "blob.py"): [
        'url = "https://a.blob.core.windows.net/c/b?sv=2022-11-02&sr=b&sig=<<base64>>&se=2030"\n',
    ],
    ("sql", "seed.sql"): [
        "INSERT INTO users (name, password) VALUES ('bob', '<<mixed>>');\n",
        "insert into accounts (id, login, api_key, role)\nvalues (1, 'bob', '<<hex32>>', 'x');\n",
        "CREATE USER shop IDENTIFIED BY '<<mixed>>';\n",
        "alter user shop identified by <<mixed>>;\n",
        "CREATE ROLE app LOGIN PASSWORD '<<word>>';\n",
        "ALTER USER app WITH PASSWORD '<<mixed>>';\n",
    ],
    ("rc", "home/.curlrc"): ['user = "ci:<<mixed>>"\n', "-u ci:<<word>>\n"],
    ("rc", "home/.wgetrc"): ["http_user = me\nhttp_password = <<word>>\n", "password=<<mixed>>\n"],
    ("rc", "home/.offlineimaprc"): ["[Repository a]\nremoteuser = me\nremotepass = <<word>>\n"],
    ("rc", "home/.mbsyncrc"): ["IMAPAccount a\nUser me\nPass <<mixed>>\n"],
    ("rc", "home/.muttrc"): ["set imap_pass = <<word>>\n", 'set smtp_pass="<<mixed>>"\n'],
    ("rc", "home/.zshrc"): ["export GITHUB_TOKEN=<<key40>>\n"],
    ("rc", "etc/rcrc"): ["password: <<mixed>>\n"],
}  # fmt: skip

FORMS = [Form(kind, path, text) for (kind, path), texts in _TEXTS.items() for text in texts]
