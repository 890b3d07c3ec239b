// Keeps the proof of the session, which only pages of this origin can read, and goes on to the console.

localStorage.setItem("console", document.querySelector("meta[name=proof]").content);
location.replace("/");
