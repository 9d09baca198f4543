module github.com/admit-dev/admit/go/admittest

go 1.25
