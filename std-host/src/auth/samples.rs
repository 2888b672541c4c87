//! Keys and tokens for the unit tests beside this file. The recorded ones are iperf3's own; the rest are
//! throw-away keys, made with `openssl genrsa`, `openssl rsa -traditional`, `openssl rsa
//! -RSAPublicKey_out` and `openssl ecparam -name prime256v1 -genkey`.

pub(super) const PRIVATE: &str = include_str!("../../../tests/recorded/auth-private.pem");
pub(super) const PUBLIC: &str = include_str!("../../../tests/recorded/auth-public.pem");

/// What this system says about a file that is not there.
pub(super) fn not_there() -> String {
    crate::error::words(&std::fs::File::open("no/such/file").expect_err("it is not there"))
}

/// One value of the recorded vector, by its key.
pub(super) fn recorded(key: &str) -> String {
    let vector = include_str!("../../../tests/recorded/auth-vector.json");
    let vector: serde_json::Value = serde_json::from_str(vector).expect("recorded");
    vector[key].as_str().expect("a text").to_owned()
}

pub(super) const PKCS1_PRIVATE: &str = "-----BEGIN RSA PRIVATE KEY-----\n\
 MIICXAIBAAKBgQCvAxZ2QSTJ8p3laCjZqJFF5XMiJPthLTxMQ7y9pdyaoWJr0egB\n\
 lZNQorPYa71CyW3Efvl9+ikg9ezu88i4bCLf85PZig9scHB/h8feJzh4vcIsiZfR\n\
 hR4ilDKhlYc99l0WKTPcURY/XS+sQUsHoKx8iEjZZBi0KZwXqzX+gc9E3QIDAQAB\n\
 AoGAN59Wmzz3EUwPzOJ+4TaG/V0Aa6CvWGJFIMQCj4/QfkC+hCARibddO6qKWEVd\n\
 wIU+Ys4sQ1Knkbc3l3ZZm+uaZWZ59cl7XgM3UNh86uvBVQTVhUlP1gJ465+DLr9n\n\
 Q6nWxvMtFWHiLHNzMbjW/QhkleL2L0SVRqSfLe0+2X43jqECQQDV9dHHuCTdq/mQ\n\
 65M4i4UGwi/62LdfoFHivF8emwmNiyXWsBJNOHpHtVYr9oZqeSmtfrMIg5B30uRx\n\
 /vIwKJ2VAkEA0WYtxLYLxcgfqP2O5zMnxo2b8Y+hzkpzqSGfqBjX3Dw65ukbCOxU\n\
 fqcMFNq09mrMvuOjO48aG+3q42rbJMPoKQJAZ9JNhiUjtnDxu9Gj8Yc5+KqXz5gD\n\
 eyJ3OZeAbIB8pTNFHCT57ICgTVV/x/trBBVhFO/q/hGhM5OhCHPWn2nF9QJBAIkS\n\
 Lduan1I0kiT49dZ6MgtTH0WdE/oJ2nRYQj6zJHpSIuyMotnQee7+QnZURCkZ+DTs\n\
 pimSnzCxKRT9Gb6TTyECQFJWyYIBquBezIbu7xxioL4gVJIFevn5S9/mPoHpWej5\n\
 JBbJbhDADYhiaREwlgUEsNam3wiMlWeD8fzdKKfHG6Y=\n\
 -----END RSA PRIVATE KEY-----\n";
pub(super) const PKCS1_PUBLIC: &str = "-----BEGIN RSA PUBLIC KEY-----\n\
 MIGJAoGBAK8DFnZBJMnyneVoKNmokUXlcyIk+2EtPExDvL2l3JqhYmvR6AGVk1Ci\n\
 s9hrvULJbcR++X36KSD17O7zyLhsIt/zk9mKD2xwcH+Hx94nOHi9wiyJl9GFHiKU\n\
 MqGVhz32XRYpM9xRFj9dL6xBSwegrHyISNlkGLQpnBerNf6Bz0TdAgMBAAE=\n\
 -----END RSA PUBLIC KEY-----\n";
pub(super) const EC_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
 MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgSQlDUIiSZ76PS3uF\n\
 NnqdDm9H5MRrfLifUBnOAyMZRV6hRANCAASAaqb/HJBAXz1HRy8RwkssEQFZHihQ\n\
 4a6wooyaqlY3nmvlhCvRbtbWvWAQ6suyhbW7fqW10b+vsbSrA/AZ5zBB\n\
 -----END PRIVATE KEY-----\n";
pub(super) const EC_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\n\
 MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEgGqm/xyQQF89R0cvEcJLLBEBWR4o\n\
 UOGusKKMmqpWN55r5YQr0W7W1r1gEOrLsoW1u36ltdG/r7G0qwPwGecwQQ==\n\
 -----END PUBLIC KEY-----\n";
pub(super) const SMALL_PRIVATE: &str = "-----BEGIN PRIVATE KEY-----\n\
 MIIBVQIBADANBgkqhkiG9w0BAQEFAASCAT8wggE7AgEAAkEApwfSW9EWrQm6/4xj\n\
 sq+7U+UkuvjUbfE+vYE/lR4u6hxTckF0WLMIAQcqlTkgAWROkS6YrXMkeEPIukmv\n\
 3g7RUQIDAQABAkBbQG6wMr7MsjAzRKODD3asEtfKPf7wQYghR+dQtDi1NPp/hVe2\n\
 ofP+OKyKQDSEuyDErxt4IKoh0OkSltUDJURBAiEAz9eeyweOiGOqfVOHb9XvJJ38\n\
 Z1U33wwJ2Wi+ZgL+VV0CIQDNu2mNZ0RlwkexcJ8irZdF7BqnWrgCR8vrAORwIx7Y\n\
 hQIhALideUI0iymhBd5epK31JH+tCXcr3f30rob8ICtyu0FNAiBx8urMqjTlE813\n\
 x0QtBe7yiIpexU2D3dZhTHY6cglkrQIhAKehFuhzQE1YyOI2Etmqu8sXqgExCh+6\n\
 4l6CuzFqQ++A\n\
 -----END PRIVATE KEY-----\n";
/// `openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_primes:3`.
pub(super) const THREE_PRIMES: &str = "-----BEGIN PRIVATE KEY-----\n\
 MIICmAIBADANBgkqhkiG9w0BAQEFAASCAoIwggJ+AgEBAoGBAMu53Zz8UDHvJ5Ko\n\
 bNMA0cl0Ah7aiHGVkVasG8orr3XbVuhEWijd27TcKQwR/0SOx/t0zCDDeJpp+8/W\n\
 pFzyNZXSgCiOGxCgLLESb0LRlPUCDIG6oTkGLbU4AmPetyphHAm2a1QncD1AfJFt\n\
 0RDVWRIJyQaIxSnzJdOiGG+1lgjvAgMBAAECgYEAmw1X/L4P7yE8tiMXyDQMds2j\n\
 O4ZJaGFUX2nYMLO08/c/GsHC+O155RnW2qg3pAAg1kUpFzz2jAX2XTfCr5wbOLZ2\n\
 FBLfOQNNjMOwdIQ2RhnpciofnAu0Evy9bMSYEoH9jeRO2JcIBhcm2n2qB73aR7WI\n\
 5LlKwHwZkDlOiYoG7qkCKzv+xk/q+TJsJqzzwCJzxVoLs3SARNPp8hpIS8wvYmzB\n\
 gZiUiqK5LIcnoR8CKxuolBan2PmHylpiv3Akt5kQC+oFprJbALbVlEyv1xAuoniX\n\
 5VA3g7A/1GMCKxBc0hVlzoUz/fBZomNDE+YVHuJ9QUhSm9cTNKkBm2Rx+jh0+sKa\n\
 okxSQJ0CKxOdPUfDyG9NCQeIN9LDdyAo7QoM7+ZT+vGuDPlFSfLD35w9u/VjKRR4\n\
 b5kCKzahquk+MKcIk6aPJQjexywqo6SGnpHwW+lWFs/QBJkLCkRiDYsptSg2Go4w\n\
 gYowgYcCKx9uBQrHpr5bt475dBrR+79YG8JLYD+eNSEN+LUXbnHoZnrkG8ul6xRs\n\
 ZVsCKxs0x1SPgn0hM4Gl2aUlw3/cqxrC2Kv5LRBR4coQYGBlxd/2+UCNfTKOqiUC\n\
 Kx8xfwz92tBIh6hykafxUf2QxPWhwWDYlkBH9bdSBFdt1QTEnXIaTtfYH3I=\n\
 -----END PRIVATE KEY-----\n";
